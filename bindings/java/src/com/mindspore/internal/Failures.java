package com.mindspore.internal;

import com.mindspore.MSException;

/**
 * How an object of the interface says that something failed: by false and a line in the log, or by
 * an exception where its user asked for that. Threads that share the object have an error each.
 */
public final class Failures {
  /** Something that may fail. */
  @FunctionalInterface
  public interface Work {
    /** Does it. */
    void run();
  }

  private static final int CORE_FAILED = 1;

  static {
    Log.keep();
  }

  private final ThreadLocal<MSException> last = new ThreadLocal<>();
  private volatile boolean isThrowing;

  /** From now on failures are thrown. */
  public void setThrowing() {
    isThrowing = true;
  }

  /** Why the last call of this thread failed; empty when it did not. */
  public String last() {
    MSException error = last.get();
    return error == null ? "" : error.getMessage();
  }

  /** Does the work; whether it succeeded. */
  public boolean did(Work work) {
    try {
      work.run();
      last.remove();
      return true;
    } catch (MSException error) {
      return failed(error);
    } catch (OutOfMemoryError error) { // also of direct memory, whose limit is its own
      return failed(Errors.resource("the Java process has no memory left: " + error.getMessage()));
    } catch (RuntimeException error) {
      MSException told =
          new MSException(CORE_FAILED, "EngineError", "this should not happen: " + error);
      told.initCause(error);
      return failed(told);
    }
  }

  /** Notes that something failed; always false, to be returned. */
  public boolean failed(MSException error) {
    last.set(error);
    if (isThrowing) {
      throw error;
    }
    Log.severe(error.getMessage());
    return false;
  }
}
