package com.mindspore.config;

import com.mindspore.internal.ConfigFile;
import com.mindspore.internal.Errors;
import com.mindspore.internal.Failures;
import com.mindspore.internal.Identity;
import com.mindspore.internal.RunnerState;
import com.mindspore.internal.Secrets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * How a {@code ModelParallelRunner} runs its model: how many workers it has, and on what they run.
 * To be initialised first.
 *
 * <pre>{@code
 * RunnerConfig config = new RunnerConfig();
 * config.init(context);
 * config.setWorkersNum(2);
 * runner.init("model.mindir", config);
 * config.free();
 * }</pre>
 *
 * <p>One that is not initialised, or freed, takes no settings: setters change nothing and write a
 * line to the log (logger "com.mindspore"). So do those whose argument makes no sense. {@link
 * #lastError()} says why, and after {@link #throwing()} they throw.
 *
 * <p>All methods may be called by any thread.
 */
public class RunnerConfig implements AutoCloseable {
  static {
    Secrets.runner = RunnerConfig::state;
  }

  private final Failures failures = new Failures();

  // guarded by this
  private long identity; // 0: not initialised, or freed
  private MSContext context;
  private ContextValues contextValues; // of the context when it was given; null: there is none
  private int workersNum;
  private Map<String, Map<String, String>> configInfo;
  private String configPath;
  private List<Integer> deviceIds;

  /** A configuration that is to be initialised. */
  public RunnerConfig() {}

  /**
   * Initialises it without a context: the model runs on the CPU. What was set before is forgotten.
   *
   * @return whether that was done
   */
  public boolean init() {
    return failures.did(() -> begin(null, null));
  }

  /**
   * Initialises it. What was set before is forgotten.
   *
   * @param context on what to run; what is set there later counts, too, until a runner is
   *     initialised. {@link #free()} frees it as well; it may be freed by itself at any time.
   * @return whether that was done; false when the context is null, not initialised, or freed
   */
  public boolean init(MSContext context) {
    return failures.did(() -> {
      ContextValues taken = context == null ? null : context.values();
      if (taken == null) {
        throw Errors.wrong("RunnerConfig.init: the context is "
            + (context == null ? "null" : "not initialised, or freed; call its init()"));
      }
      begin(context, taken);
    });
  }

  /**
   * Sets how many workers the runner has, each of which runs one request at a time.
   *
   * @param workersNum 0: chosen when a runner is initialised
   */
  public void setWorkersNum(int workersNum) {
    change("setWorkersNum", () -> {
      if (workersNum < 0) {
        throw Errors.wrong("got " + workersNum + " workers, wanted 0 (automatic) or more");
      }
      this.workersNum = workersNum;
    });
  }

  /**
   * Sets the entries of a section of the configuration, in place of those that it had.
   *
   * @param section its name
   * @param config the entries, which are copied; those whose name or value is null are left out
   */
  public void setConfigInfo(String section, HashMap<String, String> config) {
    change("setConfigInfo", () -> {
      if (section == null || config == null) {
        throw Errors.wrong("setConfigInfo: got null for the section, or for its entries");
      }
      Map<String, Map<String, String>> together = new LinkedHashMap<>(configInfo);
      together.put(section, withoutNulls(config));
      ConfigFile.checkRoom(together);
      configInfo = together;
    });
  }

  /**
   * Sets the file of the configuration.
   *
   * @param configPath where it is; empty: there is none
   */
  public void setConfigPath(String configPath) {
    change("setConfigPath", () -> {
      if (configPath == null) {
        throw Errors.wrong("setConfigPath: got null, wanted the path of a file");
      }
      this.configPath = configPath;
    });
  }

  /**
   * The file of the configuration.
   *
   * @return what was set, or empty; null when it is not initialised
   */
  public synchronized String getConfigPath() {
    return identity == 0 ? null : configPath;
  }

  /**
   * Sets the devices that the workers are spread over.
   *
   * @param deviceIds their numbers, which are copied
   */
  public void setDeviceIds(ArrayList<Integer> deviceIds) {
    change("setDeviceIds", () -> {
      if (deviceIds == null || deviceIds.isEmpty()) {
        throw Errors.wrong("setDeviceIds: got " + deviceIds + ", wanted at least one number");
      }
      for (Integer id : deviceIds) {
        if (id == null || id < 0) {
          throw Errors.wrong("setDeviceIds: got " + deviceIds + ", wanted numbers from 0 on");
        }
      }
      this.deviceIds = List.copyOf(deviceIds);
    });
  }

  /**
   * The devices that the workers are spread over.
   *
   * @return a copy of what was set; null when it is not initialised
   */
  public synchronized ArrayList<Integer> getDeviceIds() {
    return identity == 0 ? null : new ArrayList<>(deviceIds);
  }

  /**
   * A number that says whether it is alive. There is no native object behind it.
   *
   * @return 0 when it is not initialised, or freed
   */
  public synchronized long getRunnerConfigPtr() {
    return identity;
  }

  /**
   * Frees it, and the context that it was given; once more does no harm. Runners that were
   * initialised with it go on.
   */
  public synchronized void free() {
    identity = 0;
    if (context != null) {
      context.free(contextValues);
      context = null;
    }
  }

  /** The same as {@link #free()}. */
  @Override
  public void close() {
    free();
  }

  /**
   * Why the last call of this thread failed.
   *
   * @return empty when it did not
   */
  public String lastError() {
    return failures.last();
  }

  /**
   * From now on calls that fail throw a {@link com.mindspore.MSException}: those that would return
   * false, and setters that would only write to the log.
   *
   * @return this
   */
  public RunnerConfig throwing() {
    failures.setThrowing();
    return this;
  }

  private synchronized void begin(MSContext given, ContextValues taken) {
    identity = Identity.next();
    context = given;
    contextValues = taken;
    workersNum = 0;
    configInfo = new LinkedHashMap<>();
    configPath = "";
    deviceIds = List.of();
  }

  private synchronized RunnerState state() {
    if (identity == 0) {
      return null;
    }
    return new RunnerState(contextValues == null ? null : contextValues.state(), workersNum,
        Collections.unmodifiableMap(new LinkedHashMap<>(configInfo)), // its maps never change
        configPath, deviceIds);
  }

  private void change(String function, Failures.Work how) {
    failures.did(() -> {
      synchronized (this) {
        if (identity == 0) {
          throw Errors.closed("RunnerConfig." + function
              + ": the configuration is not initialised, or freed; call init()");
        }
        how.run();
      }
    });
  }

  private static Map<String, String> withoutNulls(Map<String, String> entries) {
    Map<String, String> found = new LinkedHashMap<>(entries);
    found.keySet().removeIf(name -> name == null);
    found.values().removeIf(value -> value == null);
    return Collections.unmodifiableMap(found);
  }
}
