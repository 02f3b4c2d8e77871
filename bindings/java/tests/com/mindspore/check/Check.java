package com.mindspore.check;

import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;

/** What tests say. */
public final class Check {
  /** Something that may throw whatever it likes. */
  @FunctionalInterface
  public interface Body {
    /** Does it; {@code index} counts from 0 where it is done several times. */
    void run(int index) throws Exception;
  }

  /** A test that cannot be run here. */
  static final class Skipped extends RuntimeException {
    private static final long serialVersionUID = 1L;

    Skipped(String why) {
      super(why);
    }
  }

  private static final long LIMIT_NS = 120_000_000_000L; // for what comes true soon, if at all

  private Check() {}

  /** It is so. */
  public static void that(boolean isSo, String what) {
    if (!isSo) {
      throw new AssertionError(what);
    }
  }

  /** Both are the same; arrays are compared by their elements. */
  public static void equal(Object wanted, Object got) {
    if (!Objects.deepEquals(wanted, got)) {
      throw new AssertionError("wanted " + shown(wanted) + ", got " + shown(got));
    }
  }

  /** The text has that part. */
  public static void contains(String text, String part) {
    if (text == null || !text.contains(part)) {
      throw new AssertionError("wanted \"" + part + "\" within " + shown(text));
    }
  }

  /** It throws an exception of that kind, which is returned. */
  public static <E extends Throwable> E throwsA(Class<E> kind, Runnable body) {
    try {
      body.run();
    } catch (Throwable got) {
      if (kind.isInstance(got)) {
        return kind.cast(got);
      }
      throw new AssertionError("wanted a " + kind.getName() + ", got " + got, got);
    }
    throw new AssertionError("wanted a " + kind.getName() + ", nothing was thrown");
  }

  /** The test ends here: it cannot be run on this machine. */
  public static void skip(String why) {
    throw new Skipped(why);
  }

  /** Waits for something that nobody tells of. */
  public static void eventually(BooleanSupplier isSo, String what) {
    eventually(isSo, () -> what);
  }

  /** The same; what is said when it does not come true is asked for then. */
  public static void eventually(BooleanSupplier isSo, Supplier<String> what) {
    long start = System.nanoTime();
    while (!isSo.getAsBoolean()) {
      if (System.nanoTime() - start > LIMIT_NS) {
        throw new AssertionError("it does not come true: " + what.get());
      }
      LockSupport.parkNanos(1_000_000);
    }
  }

  /** Runs the body n times at once; rethrows what the first of them threw. */
  public static void threads(int n, Body body) {
    List<Throwable> thrown = new ArrayList<>();
    List<Thread> threads = new ArrayList<>();
    CountDownLatch start = new CountDownLatch(n);
    for (int i = 0; i < n; ++i) {
      int index = i;
      Thread thread = new Thread(() -> {
        try {
          start.countDown();
          start.await();
          body.run(index);
        } catch (Throwable error) {
          synchronized (thrown) {
            thrown.add(error);
          }
        }
      }, "test-" + i);
      thread.setDaemon(true);
      thread.start();
      threads.add(thread);
    }
    threads.forEach(Check::joined);
    if (!thrown.isEmpty()) {
      throw new AssertionError(thrown.size() + " of " + n + " threads failed", thrown.get(0));
    }
  }

  private static void joined(Thread thread) {
    try {
      thread.join();
    } catch (InterruptedException error) {
      throw new AssertionError("the test was interrupted", error);
    }
  }

  private static String shown(Object value) {
    if (value instanceof String) {
      return "\"" + value + "\"";
    }
    if (value == null || !value.getClass().isArray()) {
      return String.valueOf(value);
    }
    int length = java.lang.reflect.Array.getLength(value);
    StringBuilder text = new StringBuilder(value.getClass().getComponentType() + "[");
    for (int i = 0; i < Math.min(length, 20); ++i) {
      text.append(i == 0 ? "" : ", ").append(shown(java.lang.reflect.Array.get(value, i)));
    }
    return text + (length > 20 ? ", ... " + length + " of them]" : "]");
  }
}
