package com.mindspore.internal;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * The bytes of a tensor: on the heap, or in memory that the worker shares.
 *
 * <p>Whoever keeps one has a hold on it, and lets go when done; the first hold is its maker's. With
 * the last one shared memory goes back to be used again, so nobody touches the bytes without a
 * hold: they may be another tensor's, or not mapped any more, which would end the process.
 */
public abstract class Memory {
  /** Bytes up to which a message carries them more quickly than shared memory does. */
  public static final int SMALL = 16 << 10;

  private final AtomicInteger holds = new AtomicInteger(1);

  /** Memory of zeros on the heap. */
  public static Memory onHeap(int size) {
    return new OnHeap(size);
  }

  /** The number of bytes. */
  public abstract int size();

  /** All bytes, little-endian, from 0 to size; the position is the caller's own. Needs a hold. */
  public abstract ByteBuffer buffer();

  /** The same for users, who have no holds: valid for as long as they have it. Needs a hold. */
  public abstract ByteBuffer view();

  /**
   * Whether others may use it once nobody holds it: to forget to let go of it would cost memory.
   */
  public boolean isShared() {
    return true;
  }

  /** Whether a request to the worker of that session can refer to it, without a copy. */
  public abstract boolean isKnownTo(Object session);

  /** Called with the last hold gone. */
  protected abstract void drop();

  /** One more who keeps it. Needs a hold. */
  public final void hold() {
    holds.incrementAndGet();
  }

  /** One less. */
  public final void release() {
    int left = holds.decrementAndGet();
    if (left == 0) {
      drop();
    }
    assert left >= 0 : "released more often than held";
  }

  /** Whether someone else keeps it as well, such as a request under way. */
  public final boolean isHeldByOthers() {
    return holds.get() > 1;
  }

  private static final class OnHeap extends Memory {
    private final byte[] bytes;

    OnHeap(int size) {
      bytes = new byte[size];
    }

    @Override
    public int size() {
      return bytes.length;
    }

    @Override
    public ByteBuffer buffer() {
      return ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
    }

    @Override
    public ByteBuffer view() {
      return buffer();
    }

    @Override
    public boolean isShared() {
      return false;
    }

    @Override
    public boolean isKnownTo(Object session) {
      return false;
    }

    @Override
    protected void drop() {
      // the collector's
    }
  }
}
