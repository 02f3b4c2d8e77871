package com.mindspore.internal;

import java.lang.ref.Cleaner;

/** Releases what users forget to free, when the collector finds it. */
public final class Forgotten {
  private static final Cleaner CLEANER = Cleaner.create(Forgotten::thread);

  private Forgotten() {}

  /**
   * Does the work once: by clean(), or when the object is gone. It must not refer to the object.
   */
  public static Cleaner.Cleanable register(Object object, Runnable work) {
    return CLEANER.register(object, work);
  }

  private static Thread thread(Runnable work) {
    Thread thread = new Thread(work, "mslite-forgotten");
    thread.setDaemon(true);
    return thread;
  }
}
