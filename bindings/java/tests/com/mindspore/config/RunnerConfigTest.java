package com.mindspore.config;

import com.mindspore.MSException;
import com.mindspore.check.Check;
import com.mindspore.check.Logged;
import com.mindspore.internal.RunnerState;
import com.mindspore.internal.Secrets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Tests of RunnerConfig. */
public final class RunnerConfigTest {
  private RunnerConfigTest() {}

  private static RunnerState state(RunnerConfig config) {
    return Secrets.runner.apply(config);
  }

  private static MSContext context(int threads) {
    MSContext context = new MSContext();
    context.init(threads, 0);
    return context;
  }

  public static void withoutAContextItKeepsItsSettings() {
    RunnerConfig config = new RunnerConfig();
    Check.that(config.init(), "init");
    config.setWorkersNum(3);
    config.setConfigPath("/tmp/\u914d\u7f6e.ini");
    config.setDeviceIds(new ArrayList<>(List.of(0, 2)));
    HashMap<String, String> entries = new HashMap<>(Map.of("name", "value"));
    entries.put("nothing", null);
    entries.put(null, "nothing");
    config.setConfigInfo("section", entries);
    entries.put("later", "not seen");
    Check.equal(new RunnerState(null, 3, Map.of("section", Map.of("name", "value")),
                    "/tmp/\u914d\u7f6e.ini", List.of(0, 2)),
        state(config));
    Check.equal("/tmp/\u914d\u7f6e.ini", config.getConfigPath());
    Check.equal(new ArrayList<>(List.of(0, 2)), config.getDeviceIds());
  }

  public static void aFreshOneHasDefaults() {
    RunnerConfig config = new RunnerConfig();
    config.init();
    Check.equal(new RunnerState(null, 0, Map.of(), "", List.of()), state(config));
    Check.equal("", config.getConfigPath());
    Check.equal(new ArrayList<>(), config.getDeviceIds());
    Check.that(config.getRunnerConfigPtr() != 0, "alive");
  }

  public static void oneThatIsNotInitialisedTakesNothing() {
    RunnerConfig config = new RunnerConfig();
    try (Logged log = new Logged()) {
      config.setWorkersNum(2);
      config.setConfigPath("x");
      config.setDeviceIds(new ArrayList<>(List.of(1)));
      config.setConfigInfo("section", new HashMap<>());
      Check.equal(4, log.lines().size());
    }
    Check.equal(null, config.getConfigPath());
    Check.equal(null, config.getDeviceIds());
    Check.equal(0L, config.getRunnerConfigPtr());
    Check.equal(null, state(config));
    config.free();
  }

  public static void aContextMustBeAlive() {
    RunnerConfig config = new RunnerConfig();
    Check.that(!config.init(null), "null");
    Check.that(!config.init(new MSContext()), "not initialised");
    MSContext freed = context(1);
    freed.free();
    Check.that(!config.init(freed), "freed");
    Check.contains(config.lastError(), "freed");
    Check.equal(0L, config.getRunnerConfigPtr());
  }

  public static void whatIsSetAtTheContextLaterCounts() {
    MSContext context = context(1);
    RunnerConfig config = new RunnerConfig();
    config.init(context);
    context.setThreadNum(4);
    Check.equal(4, state(config).context().threadNum());
  }

  public static void aContextThatIsFreedStaysAsItWas() {
    MSContext context = context(4);
    RunnerConfig config = new RunnerConfig();
    config.init(context);
    context.free();
    Check.equal(4, state(config).context().threadNum());
    context.init(7, 0);
    Check.equal(4, state(config).context().threadNum());
    config.free();
    Check.equal(7, context.getThreadNum());
  }

  public static void freeAlsoFreesTheContext() {
    MSContext context = context(4);
    RunnerConfig config = new RunnerConfig();
    config.init(context);
    config.free();
    Check.equal(0L, context.getMSContextPtr());
    Check.equal(0L, config.getRunnerConfigPtr());
    Check.equal(null, state(config));
    config.free();
    context.free();
  }

  public static void freeInTheOtherOrderDoesNoHarm() {
    MSContext context = context(4);
    RunnerConfig config = new RunnerConfig();
    config.init(context);
    context.free();
    context.free();
    config.close();
    config.free();
    Check.equal(0L, config.getRunnerConfigPtr());
  }

  public static void valuesThatMakeNoSenseAreRefusedAndToldOf() {
    RunnerConfig config = new RunnerConfig();
    config.init();
    RunnerState before = state(config);
    config.setWorkersNum(-1);
    Check.contains(config.lastError(), "-1");
    config.setDeviceIds(new ArrayList<>());
    Check.contains(config.lastError(), "[]");
    config.setDeviceIds(new ArrayList<>(List.of(0, -7)));
    Check.contains(config.lastError(), "-7");
    config.setDeviceIds(null);
    Check.contains(config.lastError(), "null");
    config.setConfigPath(null);
    Check.contains(config.lastError(), "null");
    config.setConfigInfo(null, new HashMap<>());
    Check.contains(config.lastError(), "null");
    Check.equal(before, state(config));
  }

  public static void sectionsAndEntriesHaveTheLimitsOfTheOriginal() {
    RunnerConfig config = new RunnerConfig();
    config.init();
    HashMap<String, String> entries = new HashMap<>();
    for (int i = 0; i < 1001; ++i) {
      entries.put("entry " + i, "");
    }
    config.setConfigInfo("large", entries);
    Check.contains(config.lastError(), "1001");
    for (int i = 0; i < 101; ++i) {
      Check.equal("", i == 0 ? "" : config.lastError());
      config.setConfigInfo("section " + i, new HashMap<>());
    }
    Check.contains(config.lastError(), "101 sections");
    config.setConfigInfo("section 99", new HashMap<>(Map.of("a", "b")));
    Check.equal("", config.lastError());
    Check.equal(Map.of("a", "b"), state(config).configInfo().get("section 99"));
  }

  public static void initForgetsWhatWasSet() {
    RunnerConfig config = new RunnerConfig();
    config.init(context(2));
    config.setWorkersNum(9);
    config.init();
    Check.equal(new RunnerState(null, 0, Map.of(), "", List.of()), state(config));
  }

  public static void throwingTurnsFailuresIntoExceptions() {
    RunnerConfig config = new RunnerConfig().throwing();
    Check.throwsA(MSException.class, () -> config.init(null));
    MSException error = Check.throwsA(MSException.class, () -> config.setWorkersNum(1));
    Check.equal("ClosedError", error.kind());
  }
}
