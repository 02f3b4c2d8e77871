package com.mindspore.internal.wire;

import com.mindspore.internal.BuildRequest;
import com.mindspore.internal.Built;
import com.mindspore.internal.Description;
import com.mindspore.internal.Filled;
import com.mindspore.internal.Memory;
import java.util.List;

/**
 * What this process has at its worker: the models there, the memory both share, the lanes.
 *
 * <p>One worker per process serves all models; it is started, or attached to, by the first build.
 * Every request takes a lane of its own, so any number of threads may be in here at once. When the
 * worker dies, whatever is under way fails with a WorkerDiedError, everything that was built there
 * stays unusable, and the next current() starts another worker.
 *
 * <p>All methods throw an MSException, but for those that say otherwise. None is disturbed by an
 * interrupt: the thread's flag stays as it is.
 */
public final class Session {
  /** The one of this process; starts the worker where there is none, or none that lives. */
  public static Session current() {
    throw new UnsupportedOperationException();
  }

  /** The same, but null where a worker would have to be started. Throws nothing. */
  public static Session running() {
    throw new UnsupportedOperationException();
  }

  /** Builds a model. */
  public Built build(BuildRequest request) {
    throw new UnsupportedOperationException();
  }

  /** Gives the inputs of a model other shapes. */
  public Description resize(int model, List<long[]> shapes) {
    throw new UnsupportedOperationException();
  }

  /**
   * Runs a model. The caller holds the inputs' memory meanwhile, and has a hold on each output's.
   *
   * @param limitMs how long to wait for the answer; 0: for as long as it takes. When it passes, the
   *     request is cancelled, and a RequestTimeoutError thrown.
   */
  public List<Filled> predict(int model, List<Filled> inputs, long limitMs) {
    throw new UnsupportedOperationException();
  }

  /** A fact about a model; of the worker itself when it is 0. */
  public String info(int model, String key) {
    throw new UnsupportedOperationException();
  }

  /** Waits for the model's requests under way, then releases it. Throws nothing. */
  public void close(int model) {
    throw new UnsupportedOperationException();
  }

  /** Shared memory; null when it cannot be had. Throws nothing. */
  public Memory allocate(int size) {
    throw new UnsupportedOperationException();
  }
}
