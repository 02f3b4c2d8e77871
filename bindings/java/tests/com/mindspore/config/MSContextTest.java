package com.mindspore.config;

import com.mindspore.MSException;
import com.mindspore.check.Check;
import com.mindspore.check.Logged;
import com.mindspore.internal.ContextState;
import com.mindspore.internal.Secrets;
import java.util.ArrayList;
import java.util.List;

/** Tests of MSContext and AscendDeviceInfo. */
public final class MSContextTest {
  private MSContextTest() {}

  private static MSContext initialised() {
    MSContext context = new MSContext();
    Check.that(context.init(), "init");
    return context;
  }

  public static void theDefaultsAreAutomatic() {
    MSContext context = initialised();
    Check.equal(0, context.getThreadNum());
    Check.equal(0, context.getInterOpParallelNum());
    Check.equal(CpuBindMode.NO_BIND, context.getThreadAffinityMode());
    Check.equal(List.of(), context.getThreadAffinityCoreList());
    Check.that(!context.getEnableParallel(), "not parallel");
    Check.that(context.getMSContextPtr() != MindsporeLite.POINTER_DEFAULT_VALUE, "alive");
  }

  public static void gettersReturnWhatWasSet() {
    MSContext context = initialised();
    context.setThreadNum(10);
    context.setInterOpParallelNum(1);
    context.setThreadAffinity(2);
    ArrayList<Integer> cores = new ArrayList<>(List.of(1, 2, 3));
    context.setThreadAffinity(cores);
    cores.clear();
    Check.equal(10, context.getThreadNum());
    Check.equal(1, context.getInterOpParallelNum());
    Check.equal(2, context.getThreadAffinityMode());
    Check.equal(new ArrayList<>(List.of(1, 2, 3)), context.getThreadAffinityCoreList());
  }

  public static void initTakesThreadsAndMode() {
    MSContext context = new MSContext();
    Check.that(context.init(3, CpuBindMode.HIGHER_CPU), "init");
    Check.equal(3, context.getThreadNum());
    Check.equal(1, context.getThreadAffinityMode());
    try (Logged log = new Logged()) {
      Check.that(context.init(4, CpuBindMode.MID_CPU, true), "parallel is only logged");
      Check.equal(1, log.lines().size());
    }
    Check.equal(4, context.getThreadNum());
    Check.equal(2, context.getThreadAffinityMode());
    Check.that(!context.getEnableParallel(), "not parallel");
  }

  public static void oneThatIsNotInitialisedTakesNothing() {
    MSContext context = new MSContext();
    try (Logged log = new Logged()) {
      context.setThreadNum(2);
      context.setInterOpParallelNum(2);
      context.setThreadAffinity(1);
      context.setThreadAffinity(new ArrayList<>(List.of(1)));
      context.setEnableParallel(false);
      Check.that(!context.addDeviceInfo(DeviceType.DT_CPU, false), "no device");
      Check.equal(6, log.lines().size());
      Check.contains(log.lines().get(0), "SEVERE: MSContext.setThreadNum: the context is not");
    }
    Check.equal(-1, context.getThreadNum());
    Check.equal(-1, context.getInterOpParallelNum());
    Check.equal(-1, context.getThreadAffinityMode());
    Check.equal(new ArrayList<>(), context.getThreadAffinityCoreList());
    Check.that(!context.getEnableParallel(), "not parallel");
    Check.equal(0L, context.getMSContextPtr());
    Check.equal(null, Secrets.context.apply(context));
    context.free();
  }

  public static void valuesOutOfRangeAreRefusedAndToldOf() {
    MSContext context = initialised();
    Check.that(!context.init(-1, 0), "-1 threads");
    Check.contains(context.lastError(), "-1");
    Check.that(!context.init(1, 7), "mode 7");
    Check.contains(context.lastError(), "CPU bind mode 7");
    context.setThreadNum(-2);
    Check.contains(context.lastError(), "-2");
    context.setInterOpParallelNum(-3);
    Check.contains(context.lastError(), "-3");
    context.setThreadAffinity(3);
    Check.contains(context.lastError(), "3");
    context.setThreadAffinity(new ArrayList<>(List.of(0, -5)));
    Check.contains(context.lastError(), "-5");
    context.setEnableParallel(true);
    Check.contains(context.lastError(), "not supported");
    Check.equal(new ContextState(0, 0, 0, List.of(), List.of()), Secrets.context.apply(context));
    context.setThreadNum(1);
    Check.equal("", context.lastError());
  }

  public static void aNullListOfCoresIsTheCallersMistake() {
    MSContext context = initialised();
    Check.throwsA(
        NullPointerException.class, () -> context.setThreadAffinity((ArrayList<Integer>) null));
  }

  public static void devicesAreKeptInTheirOrder() {
    MSContext context = initialised();
    Check.that(context.addDeviceInfo(DeviceType.DT_GPU, true), "GPU");
    Check.that(context.addDeviceInfo(DeviceType.DT_NPU, false, 0), "NPU: the build refuses it");
    Check.that(context.addDeviceInfo(DeviceType.DT_ASCEND, false), "Ascend");
    Check.that(context.addDeviceInfo(DeviceType.DT_CPU, false, 0), "CPU");
    Check.that(!context.addDeviceInfo(4, false), "there is no type 4");
    Check.that(!context.addDeviceInfo(-1, false, 3), "there is no type -1");
    List<ContextState.Device> devices = Secrets.context.apply(context).devices();
    Check.equal(
        List.of(new ContextState.Device(1, true, null), new ContextState.Device(2, false, null),
            new ContextState.Device(3, false, null), new ContextState.Device(0, false, null)),
        devices);
  }

  public static void ascendSettingsAreCopiedWhenTheyAreGiven() {
    AscendDeviceInfo info = new AscendDeviceInfo();
    info.setDeviceID(2);
    info.setProvider("ge");
    info.setInputFormat(null);
    info.getDynamicBatchSize().add(4);
    info.getInputShapeMap().put(0, new ArrayList<>(List.of(1, 3)));
    MSContext context = initialised();
    Check.that(context.addDeviceInfo(info), "Ascend");
    info.setDeviceID(9);
    info.getDynamicBatchSize().clear();
    info.getInputShapeMap().get(0).clear();
    AscendDeviceInfo kept = Secrets.context.apply(context).devices().get(0).ascend();
    Check.equal(2, kept.getDeviceID());
    Check.equal("ge", kept.getProvider());
    Check.equal("", kept.getInputFormat());
    Check.equal(List.of(4), kept.getDynamicBatchSize());
    Check.equal(List.of(1, 3), kept.getInputShapeMap().get(0));
    Check.equal("enforce_fp16", kept.getPrecisionMode());
  }

  public static void ascendSettingsThatMakeNoSenseAreRefused() {
    MSContext context = initialised();
    Check.that(!context.addDeviceInfo(null), "null");
    AscendDeviceInfo info = new AscendDeviceInfo();
    info.getDynamicBatchSize().add(null);
    Check.that(!context.addDeviceInfo(info), "a null in a list");
    info = new AscendDeviceInfo();
    info.getInputShapeMap().put(1, null);
    Check.that(!context.addDeviceInfo(info), "a null in a map");
    Check.contains(context.lastError(), "inputShapeMap");
  }

  public static void anAscendDeviceHasTheDefaultsOfTheOriginal() {
    AscendDeviceInfo info = new AscendDeviceInfo();
    Check.equal(DeviceType.DT_ASCEND, info.getDeviceType());
    Check.equal(0, info.getDeviceID() + info.getRankID() + info.getOutputType());
    Check.equal("", info.getProvider() + info.getInsertOpConfigPath() + info.getInputFormat());
    Check.equal("", info.getInputShape() + info.getDynamicImageSize());
    Check.equal("", info.getFusionSwitchConfigPath());
    Check.that(info.getInputShapeMap().isEmpty() && info.getDynamicBatchSize().isEmpty(), "empty");
    Check.equal("enforce_fp16", info.getPrecisionMode());
    Check.equal("high_performance", info.getOpSelectImplMode());
    Check.equal("l2_optimize", info.getBufferOptimizeMode());
  }

  public static void freeTwiceDoesNoHarmAndInitBeginsAnew() {
    MSContext context = initialised();
    context.setThreadNum(5);
    long first = context.getMSContextPtr();
    context.free();
    context.close();
    Check.equal(0L, context.getMSContextPtr());
    Check.equal(-1, context.getThreadNum());
    Check.that(context.init(), "once more");
    Check.equal(0, context.getThreadNum());
    Check.that(context.getMSContextPtr() != first, "another one");
  }

  public static void throwingTurnsFailuresIntoExceptions() {
    MSContext context = new MSContext().throwing();
    MSException error = Check.throwsA(MSException.class, () -> context.setThreadNum(2));
    Check.equal("ClosedError", error.kind());
    Check.that(context.init(), "what succeeds does not throw");
    Check.throwsA(MSException.class, () -> context.addDeviceInfo(17, false));
  }

  public static void manyThreadsMaySetAndRead() {
    MSContext context = initialised();
    Check.threads(4, i -> {
      for (int round = 0; round < 500; ++round) {
        context.addDeviceInfo(DeviceType.DT_CPU, false);
        Secrets.context.apply(context);
      }
    });
    Check.equal(2000, Secrets.context.apply(context).devices().size());
  }
}
