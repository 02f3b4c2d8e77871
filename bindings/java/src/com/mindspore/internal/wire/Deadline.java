package com.mindspore.internal.wire;

import com.mindspore.MSException;
import com.mindspore.internal.Errors;

/** Until when to wait; perhaps for ever. */
final class Deadline {
  static final Deadline NEVER = new Deadline(0, 0);

  private final long limitMs; // 0: none
  private final long dueNs; // of System.nanoTime(), whose numbers wrap

  private Deadline(long limitMs, long dueNs) {
    this.limitMs = limitMs;
    this.dueNs = dueNs;
  }

  /** In so many milliseconds from now; 0: never. */
  static Deadline in(long limitMs) {
    long most = Long.MAX_VALUE / 4_000_000; // a thousand years and more
    long kept = Math.min(Math.max(limitMs, 0), most);
    return kept == 0 ? NEVER : new Deadline(kept, System.nanoTime() + kept * 1_000_000);
  }

  /** One of the same limit that is kept for so much longer. */
  Deadline later(long milliseconds) {
    return this == NEVER ? NEVER : new Deadline(limitMs, dueNs + milliseconds * 1_000_000);
  }

  /** Whichever comes first. */
  Deadline orIn(long milliseconds) {
    return leftMs() <= milliseconds ? this : in(milliseconds);
  }

  boolean isOver() {
    return leftMs() == 0;
  }

  /** Rounded up, so that who waits so long does not look again within the last millisecond. */
  long leftMs() {
    if (this == NEVER) {
      return Long.MAX_VALUE;
    }
    return Math.max(0, (dueNs - System.nanoTime() + 999_999) / 1_000_000);
  }

  /** The error when it has passed. */
  MSException passed() {
    return Errors.timeout("the worker did not answer within " + limitMs
        + " ms; the request was cancelled. Allow more time, or send less at once");
  }
}
