package com.mindspore.internal.wire;

/**
 * How a worker describes a block.
 *
 * @param block its number in the session
 * @param descriptor that the worker has for it
 * @param size in bytes
 */
record Made(int block, int descriptor, long size) {
  static final int BYTES = 16; // that it takes in a message
}
