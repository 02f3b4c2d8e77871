package com.mindspore.internal;

import java.util.concurrent.atomic.AtomicLong;

/**
 * The numbers that {@code get...Ptr()} return. The original's are addresses; these only say that an
 * object is alive, and which one it is: none is given twice.
 */
public final class Identity {
  private static final AtomicLong LAST = new AtomicLong();

  private Identity() {}

  /** A number that is not 0. */
  public static long next() {
    return LAST.incrementAndGet();
  }
}
