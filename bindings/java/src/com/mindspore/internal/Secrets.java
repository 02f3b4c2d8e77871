package com.mindspore.internal;

import com.mindspore.config.MSContext;
import com.mindspore.config.RunnerConfig;
import java.util.function.Function;

/**
 * Lets com.mindspore read what the classes of com.mindspore.config have no public method for. Those
 * classes put the functions here when they are loaded, which is before anyone has an object of
 * them.
 */
public final class Secrets {
  /** Of a context; null when it was not initialised, or is freed. */
  public static volatile Function<MSContext, ContextState> context;

  /** Of a configuration; null when it was not initialised, or is freed. */
  public static volatile Function<RunnerConfig, RunnerState> runner;

  private Secrets() {}
}
