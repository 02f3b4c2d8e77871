package com.mindspore.internal;

import com.mindspore.check.Check;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.concurrent.CountDownLatch;

/** Shared memory that nobody shares: whoever touches it after the last hold has gone is caught. */
public final class FakeMemory extends Memory {
  /** Counted down with the last hold. */
  private final CountDownLatch dropped = new CountDownLatch(1);

  private final byte[] bytes;

  /** With these bytes. */
  public FakeMemory(byte... bytes) {
    this.bytes = bytes;
  }

  /** Whether nobody has it any more. */
  public boolean isDropped() {
    return dropped.getCount() == 0;
  }

  @Override
  public int size() {
    return bytes.length;
  }

  @Override
  public ByteBuffer buffer() {
    Check.that(!isDropped(), "memory is touched that nobody holds");
    return ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
  }

  @Override
  public ByteBuffer view() {
    return buffer();
  }

  @Override
  public boolean isKnownTo(Object session) {
    return false;
  }

  @Override
  protected void drop() {
    Check.that(!isDropped(), "memory is dropped twice");
    dropped.countDown();
  }
}
