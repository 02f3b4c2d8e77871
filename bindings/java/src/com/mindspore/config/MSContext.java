package com.mindspore.config;

import com.mindspore.internal.ContextState;
import com.mindspore.internal.Errors;
import com.mindspore.internal.Failures;
import com.mindspore.internal.Log;
import com.mindspore.internal.Secrets;
import java.util.ArrayList;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import java.util.function.ToIntFunction;

/**
 * On what a model runs, and with how many threads. To be initialised first; then a device must be
 * added.
 *
 * <pre>{@code
 * MSContext context = new MSContext();
 * context.init(2, CpuBindMode.NO_BIND);
 * context.addDeviceInfo(DeviceType.DT_CPU, false);
 * }</pre>
 *
 * <p>A context that is not initialised, or freed, takes no settings: setters change nothing and
 * write a line to the log (logger "com.mindspore"). So do those whose argument is out of range.
 * {@link #lastError()} says why, and after {@link #throwing()} they throw.
 *
 * <p>All methods may be called by any thread.
 */
public class MSContext implements AutoCloseable {
  private static final int NPU_FREQUENCY = 3;
  private static final int UNKNOWN = -1;
  private static final String NOT_PARALLEL =
      "isEnableParallel is not supported and has no effect; use setInterOpParallelNum";

  static {
    Secrets.context = MSContext::state;
  }

  private final Failures failures = new Failures();
  // of null: not initialised, or freed
  private final AtomicReference<ContextValues> values = new AtomicReference<>();

  /** A context that is to be initialised. */
  public MSContext() {}

  /**
   * Initialises it: the number of threads is chosen when a model is built, and they run on any
   * core.
   *
   * @return whether that was done
   */
  public boolean init() {
    return init(0, CpuBindMode.NO_BIND);
  }

  /**
   * Initialises it. What was set before is forgotten.
   *
   * @param threadNum how many threads compute; 0: chosen when a model is built
   * @param cpuBindMode a number of {@link CpuBindMode}
   * @return whether that was done; false when a number is out of range, and then it is as it was
   */
  public boolean init(int threadNum, int cpuBindMode) {
    return failures.did(() -> {
      ContextValues fresh = new ContextValues();
      fresh.setThreadNum(threadNum);
      fresh.setAffinityMode(cpuBindMode);
      values.set(fresh);
    });
  }

  /**
   * Initialises it. What was set before is forgotten.
   *
   * @param threadNum how many threads compute; 0: chosen when a model is built
   * @param cpuBindMode a number of {@link CpuBindMode}
   * @param isEnableParallel has no effect; true gives a line in the log
   * @return whether that was done; false when a number is out of range, and then it is as it was
   */
  public boolean init(int threadNum, int cpuBindMode, boolean isEnableParallel) {
    if (isEnableParallel) {
      Log.severe("MSContext.init: " + NOT_PARALLEL);
    }
    return init(threadNum, cpuBindMode);
  }

  /**
   * Adds a device; the same as with a frequency of 3.
   *
   * @param deviceType a number of {@link DeviceType}
   * @param isEnableFloat16 whether it may compute in half precision
   * @return whether it was added; false for an unknown type
   */
  public boolean addDeviceInfo(int deviceType, boolean isEnableFloat16) {
    return addDeviceInfo(deviceType, isEnableFloat16, NPU_FREQUENCY);
  }

  /**
   * Adds a device. GPU and Ascend are device 0; for another one use {@link
   * #addDeviceInfo(AscendDeviceInfo)}, or {@link RunnerConfig#setDeviceIds}.
   *
   * @param deviceType a number of {@link DeviceType}; building for an NPU fails, as it is a phone's
   * @param isEnableFloat16 whether it may compute in half precision
   * @param npuFreq for an NPU only
   * @return whether it was added; false for an unknown type
   */
  public boolean addDeviceInfo(int deviceType, boolean isEnableFloat16, int npuFreq) {
    return change("addDeviceInfo", context -> {
      if (deviceType < DeviceType.DT_CPU || deviceType > DeviceType.DT_ASCEND) {
        throw Errors.wrong("got device type " + deviceType
            + ", wanted DT_CPU (0), DT_GPU (1) or DT_ASCEND (3) of DeviceType");
      }
      context.addDevice(new ContextState.Device(deviceType, isEnableFloat16, null));
    });
  }

  /**
   * Adds an Ascend device.
   *
   * @param info its settings, which are copied
   * @return whether it was added; false for null
   */
  public boolean addDeviceInfo(AscendDeviceInfo info) {
    return change("addDeviceInfo", context -> {
      if (info == null) {
        throw Errors.wrong("got null for the settings of an Ascend device");
      }
      context.addDevice(new ContextState.Device(info.getDeviceType(), false, info.copy()));
    });
  }

  /**
   * Sets how many threads compute.
   *
   * @param threadNum 0: chosen when a model is built
   */
  public void setThreadNum(int threadNum) {
    change("setThreadNum", context -> context.setThreadNum(threadNum));
  }

  /**
   * How many threads compute.
   *
   * @return what was set; -1 when it is not initialised
   */
  public int getThreadNum() {
    return number(ContextState::threadNum);
  }

  /**
   * Sets how many operators run at once.
   *
   * @param parallelNum 0: chosen when a model is built
   */
  public void setInterOpParallelNum(int parallelNum) {
    change("setInterOpParallelNum", context -> context.setInterOpParallelNum(parallelNum));
  }

  /**
   * How many operators run at once.
   *
   * @return what was set; -1 when it is not initialised
   */
  public int getInterOpParallelNum() {
    return number(ContextState::interOpParallelNum);
  }

  /**
   * Sets which cores the threads keep to.
   *
   * @param mode a number of {@link CpuBindMode}
   */
  public void setThreadAffinity(int mode) {
    change("setThreadAffinity", context -> context.setAffinityMode(mode));
  }

  /**
   * Which cores the threads keep to.
   *
   * @return what was set; -1 when it is not initialised
   */
  public int getThreadAffinityMode() {
    return number(ContextState::affinityMode);
  }

  /**
   * Sets the very cores that the threads keep to; they count before the mode.
   *
   * @param coreList their numbers, which are copied; empty: as the mode says
   * @throws NullPointerException when it is null
   */
  public void setThreadAffinity(ArrayList<Integer> coreList) {
    ArrayList<Integer> cores = new ArrayList<>(coreList);
    change("setThreadAffinity", context -> context.setAffinityCores(cores));
  }

  /**
   * The very cores that the threads keep to.
   *
   * @return a copy; empty when none were set, or it is not initialised
   */
  public ArrayList<Integer> getThreadAffinityCoreList() {
    ContextState state = state();
    return state == null ? new ArrayList<>() : new ArrayList<>(state.affinityCores());
  }

  /**
   * Has no effect: this kind of parallelism is not supported. See {@link #setInterOpParallelNum}.
   *
   * @param isEnableParallel true gives a line in the log
   */
  public void setEnableParallel(boolean isEnableParallel) {
    change("setEnableParallel", context -> {
      if (isEnableParallel) {
        throw Errors.unavailable(NOT_PARALLEL);
      }
    });
  }

  /**
   * Whether that kind of parallelism is on.
   *
   * @return always false
   */
  public boolean getEnableParallel() {
    return false;
  }

  /**
   * A number that says whether it is alive. There is no native object behind it.
   *
   * @return 0 when it is not initialised, or freed
   */
  public long getMSContextPtr() {
    ContextValues context = values.get();
    return context == null ? MindsporeLite.POINTER_DEFAULT_VALUE : context.identity;
  }

  /**
   * Frees it; once more does no harm. Models that were built with it, and a {@link RunnerConfig}
   * that it was given to, go on with what was set.
   */
  public void free() {
    values.set(null);
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
  public MSContext throwing() {
    failures.setThrowing();
    return this;
  }

  /** What it says, for a RunnerConfig; null when it is not initialised, or freed. */
  ContextValues values() {
    return values.get();
  }

  /** Frees it, unless it was initialised anew since. */
  void free(ContextValues taken) {
    values.compareAndSet(taken, null);
  }

  private ContextState state() {
    ContextValues context = values.get();
    return context == null ? null : context.state();
  }

  private int number(ToIntFunction<ContextState> which) {
    ContextState state = state();
    return state == null ? UNKNOWN : which.applyAsInt(state);
  }

  private boolean change(String function, Consumer<ContextValues> how) {
    return failures.did(() -> {
      ContextValues context = values.get();
      if (context == null) {
        throw Errors.closed(
            "MSContext." + function + ": the context is not initialised, or freed; call init()");
      }
      how.accept(context);
    });
  }
}
