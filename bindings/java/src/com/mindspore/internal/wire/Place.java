package com.mindspore.internal.wire;

/**
 * Where in which block some bytes are.
 *
 * @param block its number; 0: nowhere
 */
record Place(int block, long offset, long size) {
  static final Place NOWHERE = new Place(0, 0, 0);
}
