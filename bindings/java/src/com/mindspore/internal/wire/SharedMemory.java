package com.mindspore.internal.wire;

import com.mindspore.internal.Memory;
import java.nio.ByteBuffer;

/** The bytes of a tensor in a block; the last one of the block's tensors gives it back. */
final class SharedMemory extends Memory {
  private final Share share;
  private final int offset;
  private final int size;

  /** Takes one more part in the share. */
  SharedMemory(Share share, int offset, int size) {
    this.share = share;
    this.offset = offset;
    this.size = size;
    share.join();
  }

  int block() {
    return share.block().number();
  }

  int offset() {
    return offset;
  }

  @Override
  public int size() {
    return size;
  }

  @Override
  public ByteBuffer buffer() {
    return share.block().part(offset, size);
  }

  @Override
  public ByteBuffer view() {
    share.block().expose();
    return buffer();
  }

  @Override
  public boolean isKnownTo(Object session) {
    return share.isOf(session) && share.block().isKnown();
  }

  @Override
  protected void drop() {
    share.leave();
  }
}
