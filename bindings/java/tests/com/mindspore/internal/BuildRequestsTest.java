package com.mindspore.internal;

import com.mindspore.MSException;
import com.mindspore.check.Check;
import com.mindspore.check.Logged;
import com.mindspore.config.AscendDeviceInfo;
import com.mindspore.config.DataType;
import com.mindspore.config.DeviceType;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

public final class BuildRequestsTest {
  private static final ContextState.Device CPU =
      new ContextState.Device(DeviceType.DT_CPU, false, null);
  private static final ContextState.Device GPU =
      new ContextState.Device(DeviceType.DT_GPU, true, null);

  private BuildRequestsTest() {}

  private static BuildRequest of(boolean isRunner, ContextState.Device... devices) {
    BuildRequest request = new BuildRequest();
    request.isRunner = isRunner;
    BuildRequests.addContext(new ContextState(3, 0, 2, List.of(0, 1), List.of(devices)), request);
    return request;
  }

  private static String settings(BuildRequest request) {
    List<String> lines = new ArrayList<>();
    request.settings.forEach(one -> lines.add(one.name() + "=" + one.value()));
    return String.join(" ", lines);
  }

  public static void thePathBecomesAbsolute() {
    Check.equal(System.getProperty("user.dir") + "/.", BuildRequests.ofFile(".", 0).path);
  }

  public static void aFileThatIsNotThereIsToldByItsName() {
    MSException error =
        Check.throwsA(MSException.class, () -> BuildRequests.ofFile("no/such.mindir", 0));
    Check.equal("ModelFileError", error.kind());
    Check.contains(error.getMessage(), "model file 'no/such.mindir' cannot be read");
  }

  public static void onlyWhatWasSetIsSent() {
    Check.equal(
        "target=cpu cpu.thread_num=3 cpu.thread_affinity_mode=2 cpu.thread_affinity_core_list=0,1",
        settings(of(false, CPU)));
  }

  public static void theGpuComesBeforeTheCpu() {
    for (boolean isRunner : new boolean[] {true, false}) {
      Check.contains(
          settings(of(isRunner, GPU, CPU)), "target=gpu gpu.precision_mode=preferred_fp16");
      MSException error = Check.throwsA(MSException.class, () -> of(isRunner, CPU, GPU));
      Check.contains(error.getMessage(), "device 1 of the context is a GPU behind the CPU");
    }
  }

  public static void aRunnersListMayHaveTheCpuBeforeAscend() {
    ContextState.Device ascend =
        new ContextState.Device(DeviceType.DT_ASCEND, false, new AscendDeviceInfo());
    Check.contains(settings(of(true, CPU, ascend)), "target=ascend");
    Check.contains(settings(of(false, CPU, ascend)), "target=cpu");
  }

  public static void ascendOptionsArriveButTheUsersOwnEntriesCount() {
    AscendDeviceInfo info = new AscendDeviceInfo();
    info.setDeviceID(2);
    info.setProvider("ge");
    info.setDynamicBatchSize(new ArrayList<>(List.of(1, 4)));
    BuildRequest request = new BuildRequest();
    request.config.put("ascend_context", new java.util.HashMap<>(Map.of("input_format", "NHWC")));
    info.setInputFormat("NCHW");
    BuildRequests.addContext(
        new ContextState(0, 0, 0, List.of(),
            List.of(new ContextState.Device(DeviceType.DT_ASCEND, false, info))),
        request);
    Check.contains(settings(request), "target=ascend ascend.device_id=2 ascend.provider=ge");
    Check.equal("1,4", request.config.get("ascend_context").get("dynamic_batch_size"));
    Check.equal("NHWC", request.config.get("ascend_context").get("input_format"));
  }

  public static void whatHasNoEffectOnAscendIsTold() {
    AscendDeviceInfo info = new AscendDeviceInfo();
    info.setOutputType(DataType.kNumberTypeFloat16);
    info.getInputShapeMap().put(0, new ArrayList<>(List.of(1, 3)));
    try (Logged log = new Logged()) {
      of(false, new ContextState.Device(DeviceType.DT_ASCEND, false, info));
      Check.equal(2, log.lines().size());
      Check.contains(
          log.lines().get(0), "WARNING: AscendDeviceInfo.setInputShapeMap has no effect");
      Check.contains(log.lines().get(1), "WARNING: AscendDeviceInfo.setOutputType has no effect");
    }
  }

  public static void otherDevicesAreRefused() {
    ContextState.Device npu = new ContextState.Device(DeviceType.DT_NPU, false, null);
    Check.contains(
        Check.throwsA(MSException.class, () -> of(false, npu)).getMessage(), "device type 2");
    Check.contains(Check.throwsA(MSException.class, () -> of(false)).getMessage(), "no device");
  }

  public static void theSectionParallelIsSentAsItIs() {
    BuildRequest request = new BuildRequest();
    BuildRequests.addRunner(
        new RunnerState(null, 4,
            Map.of("parallel", Map.of("timeout_s", "1.5"), "other", Map.of("a", "b")), "",
            List.of(0, 1)),
        request);
    Check.equal("parallel.workers_num=4 parallel.device_ids=0,1", settings(request));
    Check.equal(
        Map.of("parallel", Map.of("timeout_s", "1.5"), "other", Map.of("a", "b")), request.config);
  }
}
