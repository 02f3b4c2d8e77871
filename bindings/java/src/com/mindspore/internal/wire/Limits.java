package com.mindspore.internal.wire;

import com.mindspore.internal.Memory;
import com.mindspore.internal.Types;

/** How large things can be; docs/wire.md. */
final class Limits {
  static final int TEXT = 1 << 20;
  static final int NAME = 4096;
  static final int KEY = 1024;
  static final int DIMS = Types.MAX_RANK;
  static final int ITEMS = 1 << 16;
  static final int BODY = 16 << 20;
  static final long TENSOR = 1L << 62; // bytes, counting dims of 0 as 1

  /** Bytes of a block: less than a worker can make, but what Java can map. */
  static final int BLOCK = Integer.MAX_VALUE;

  /** Bytes of a tensor that travels in the frame. */
  static final int INLINE = Memory.SMALL;

  /** Bytes of all tensors in a frame; the rest is for names and dims. */
  static final int INLINE_TOTAL = BODY / 2;

  private static final int ALIGNMENT = 64; // of whatever is placed in a block

  private Limits() {}

  /** The size, rounded up so that something else can follow in a block. */
  static long aligned(long size) {
    return (size + ALIGNMENT - 1) & -ALIGNMENT;
  }
}
