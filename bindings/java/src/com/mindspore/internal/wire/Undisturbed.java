package com.mindspore.internal.wire;

import java.io.IOException;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executor;
import java.util.concurrent.FutureTask;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/** Threads of our own, for what an interrupt would damage: users' threads get interrupted. */
final class Undisturbed {
  private static final long IDLE_S = 10; // after which one ends

  private static final Executor THREADS = new ThreadPoolExecutor(0, Integer.MAX_VALUE, IDLE_S,
      TimeUnit.SECONDS, new SynchronousQueue<>(), Undisturbed::thread);

  private Undisturbed() {}

  /** Does the work in one. Throws what that throws: an IOException, or what is unchecked. */
  static <T> T done(Callable<T> work) throws IOException {
    FutureTask<T> task = new FutureTask<>(work);
    THREADS.execute(task);
    try {
      return Interrupts.putOff(task::get);
    } catch (ExecutionException error) {
      Throwable why = error.getCause();
      if (why instanceof IOException known) {
        throw known;
      }
      if (why instanceof Error known) {
        throw known;
      }
      throw (RuntimeException) why;
    }
  }

  private static Thread thread(Runnable work) {
    Thread thread = new Thread(work, "mslite-mapping");
    thread.setDaemon(true);
    return thread;
  }
}
