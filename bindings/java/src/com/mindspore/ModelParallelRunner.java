package com.mindspore;

import com.mindspore.config.ModelType;
import com.mindspore.config.RunnerConfig;
import com.mindspore.internal.BuildRequest;
import com.mindspore.internal.BuildRequests;
import com.mindspore.internal.Errors;
import com.mindspore.internal.Failures;
import com.mindspore.internal.Filled;
import com.mindspore.internal.Forgotten;
import com.mindspore.internal.Remote;
import com.mindspore.internal.RunnerState;
import com.mindspore.internal.Secrets;
import com.mindspore.internal.wire.CallOptions;
import java.lang.ref.Cleaner;
import java.lang.ref.Reference;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/**
 * Concurrent inference: any number of threads call {@link #predict} on one runner, whose workers
 * share one copy of the weights. Each thread has tensors of its own.
 *
 * <p>{@link #free} waits for the calls that are under way; later ones fail. A runner that is
 * forgotten is released when the collector finds it.
 */
public class ModelParallelRunner implements AutoCloseable {
  private final Failures failures = new Failures();
  private final Object starting = new Object(); // one init or free at a time
  private final Object lock = new Object(); // of what follows
  private Live live; // null: not there
  private Cleaner.Cleanable forgotten;

  /** What a successful init made. */
  private static final class Live {
    final Remote remote;
    final long limitMs;
    int uses; // calls that are under way

    Live(Remote remote, long limitMs) {
      this.remote = remote;
      this.limitMs = limitMs;
    }
  }

  /** A runner that is not initialised yet. */
  public ModelParallelRunner() {}

  /**
   * Loads a model and makes its workers.
   *
   * @param modelPath the model's file
   * @param runnerConfig how many workers, and on which device; it may be freed afterwards
   * @return whether it worked; also true, without any effect, when the runner was initialised
   *     before
   */
  public boolean init(String modelPath, RunnerConfig runnerConfig) {
    return failures.did(() -> {
      if (runnerConfig == null) {
        throw Errors.wrong("init got null for the configuration; leave it out for the defaults");
      }
      start(modelPath, runnerConfig);
    });
  }

  /**
   * Loads a model with the default configuration.
   *
   * @param modelPath the model's file
   * @return whether it worked
   */
  public boolean init(String modelPath) {
    return failures.did(() -> start(modelPath, null));
  }

  /**
   * Runs the model, from any thread, and waits for the results.
   *
   * @param inputs a tensor with data for each input
   * @param outputs an empty list gets a new tensor for each output, to be freed by the caller;
   *     tensors in it, one for each output, take the results, and the list stays as it is
   * @return whether it worked
   */
  public boolean predict(List<MSTensor> inputs, List<MSTensor> outputs) {
    return predict(inputs, outputs, 0);
  }

  /**
   * The same for a request of some priority. The original has none.
   *
   * @param inputs a tensor with data for each input
   * @param outputs as above
   * @param priority -100 to 100, 0 is usual: of the requests that wait, those of a higher one start
   *     first; every 100 ms of waiting count as one more
   * @return whether it worked
   */
  public boolean predict(List<MSTensor> inputs, List<MSTensor> outputs, int priority) {
    return failures.did(() -> run(inputs, outputs, priority));
  }

  /**
   * The inputs of the model.
   *
   * @return new tensors without data at each call, to be freed by the caller; none when the runner
   *     is not initialised
   */
  public List<MSTensor> getInputs() {
    Remote remote = remote();
    return remote == null ? Collections.emptyList()
                          : Exchange.describing(remote.description().inputs(), remote.session());
  }

  /**
   * The outputs of the model.
   *
   * @return new tensors without data at each call, to be freed by the caller; none when the runner
   *     is not initialised
   */
  public List<MSTensor> getOutputs() {
    Remote remote = remote();
    return remote == null ? Collections.emptyList()
                          : Exchange.describing(remote.description().outputs(), remote.session());
  }

  /**
   * A number that says whether the runner is initialised.
   *
   * @return 0 when it is not
   */
  public long getModelParallelRunnerPtr() {
    Remote remote = remote();
    return remote == null ? 0 : remote.model();
  }

  /**
   * Why the last call of this thread failed.
   *
   * @return what went wrong and what to do; empty when nothing did
   */
  public String lastError() {
    return failures.last();
  }

  /**
   * From now on, throw an {@link MSException} where false would be returned.
   *
   * @return this
   */
  public ModelParallelRunner throwing() {
    failures.setThrowing();
    return this;
  }

  /** Releases the model, after the calls that are under way; harmless when repeated. */
  public void free() {
    synchronized (starting) {
      Live last;
      synchronized (lock) {
        last = live;
        live = null; // later calls find none
        awaitUnused(last);
      }
      if (last != null) {
        forgotten.clean();
      }
    }
  }

  /** The same as {@link #free}. */
  @Override
  public void close() {
    free();
  }

  private void start(String modelPath, RunnerConfig runnerConfig) {
    if (modelPath == null) {
      throw Errors.wrong("init got null for the path of the model");
    }
    synchronized (starting) {
      if (remote() != null) {
        return;
      }
      BuildRequest request = BuildRequests.ofFile(modelPath, ModelType.MT_MINDIR);
      request.isRunner = true;
      if (runnerConfig != null) {
        RunnerState config = Secrets.runner.apply(runnerConfig);
        if (config == null) {
          throw Errors.closed("the configuration is not initialised, or was freed; call its init");
        }
        BuildRequests.addRunner(config, request);
      }
      Remote remote = Remote.built(request);
      forgotten = Forgotten.register(this, remote::close);
      long limitMs = remote.session().limitMs(remote.model());
      synchronized (lock) {
        live = new Live(remote, limitMs);
      }
    }
  }

  private void run(List<MSTensor> inputs, List<MSTensor> outputs, int priority) {
    if (inputs == null || inputs.isEmpty()) {
      throw Errors.input("predict got no inputs; getInputs has them");
    }
    if (outputs == null) {
      throw Errors.input("predict got null for the outputs; give an empty list");
    }
    Live used = enter();
    try {
      Remote remote = used.remote;
      CallOptions options = new CallOptions(used.limitMs, priority);
      Exchange.checkOutputs(outputs, remote.description().outputs().size());
      List<Filled> contents = Exchange.contents(inputs, remote.session());
      List<Filled> results;
      try {
        results = remote.session().predict(remote.model(), contents, options);
      } finally {
        Exchange.release(contents);
      }
      Exchange.deliver(results, outputs, remote.session());
    } finally {
      leave(used);
      Reference.reachabilityFence(this); // else one whose last call this is may count as forgotten
    }
  }

  private Remote remote() {
    synchronized (lock) {
      return live == null ? null : live.remote;
    }
  }

  private Live enter() {
    synchronized (lock) {
      if (live == null) {
        throw Errors.closed("the runner is not initialised, or was freed; call init first");
      }
      live.uses += 1;
      return live;
    }
  }

  private void leave(Live used) {
    synchronized (lock) {
      used.uses -= 1;
      if (used.uses == 0) {
        lock.notifyAll();
      }
    }
  }

  private void awaitUnused(Live last) {
    boolean wasInterrupted = false;
    while (last != null && last.uses > 0) {
      try {
        lock.wait();
      } catch (InterruptedException error) {
        wasInterrupted = true;
      }
    }
    if (wasInterrupted) {
      Thread.currentThread().interrupt();
    }
  }
}
