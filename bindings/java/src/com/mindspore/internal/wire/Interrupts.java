package com.mindspore.internal.wire;

/** Waiting that an interrupt does not end: the thread's flag is set again afterwards. */
final class Interrupts {
  /** Something that an interrupt may get in the way of. */
  @FunctionalInterface
  interface Work<T, E extends Exception> {
    T run() throws E, InterruptedException;
  }

  private Interrupts() {}

  /** Does the work without the flag, and again where an interrupt came meanwhile. */
  static <T, E extends Exception> T putOff(Work<T, E> work) throws E {
    boolean isInterrupted = Thread.interrupted();
    try {
      for (;;) {
        try {
          return work.run();
        } catch (InterruptedException again) {
          isInterrupted = true;
        }
      }
    } finally {
      if (isInterrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  /** Waits so long, or longer. */
  static void sleep(long milliseconds) {
    putOff(() -> {
      Thread.sleep(milliseconds);
      return null;
    });
  }
}
