package com.mindspore.internal.wire;

import com.mindspore.internal.Errors;

/**
 * What a request asks for besides its inputs.
 *
 * @param limitMs within which there must be an answer; 0: for as long as it takes
 * @param priority of the requests that wait, those of a higher one start first; 0 is usual
 */
public record CallOptions(long limitMs, int priority) {
  private static final int LOWEST = -100;
  private static final int HIGHEST = 100;

  public CallOptions {
    if (priority < LOWEST || priority > HIGHEST) {
      throw Errors.wrong("the priority must be " + LOWEST + " to " + HIGHEST + ", but got "
          + priority + "; 0 is usual, and higher ones start first");
    }
  }

  /** Of the usual priority. */
  public static CallOptions within(long limitMs) {
    return new CallOptions(limitMs, 0);
  }
}
