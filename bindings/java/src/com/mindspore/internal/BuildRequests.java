package com.mindspore.internal;

import com.mindspore.config.AscendDeviceInfo;
import com.mindspore.config.DeviceType;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/** What a user says about a model and its devices becomes a request to the worker. */
public final class BuildRequests {
  private BuildRequests() {}

  /** Of the model in a file. */
  public static BuildRequest ofFile(String path, int modelType) {
    if (path.isEmpty()) {
      throw Errors.wrong("the path of the model is empty");
    }
    if (isMissing(path)) {
      throw Errors.file("model file '" + path + "' cannot be read: there is no such file");
    }
    BuildRequest request = new BuildRequest();
    request.modelType = modelType;
    request.path = ConfigFile.absolute(path);
    return request;
  }

  /** Of a model in memory, all of the buffer. */
  public static BuildRequest ofContent(ByteBuffer content, int modelType) {
    if (content.capacity() == 0) {
      throw Errors.wrong("got no bytes of a model: the buffer is empty");
    }
    BuildRequest request = new BuildRequest();
    request.modelType = modelType;
    request.content = content.duplicate().clear();
    return request;
  }

  /** Adds what a RunnerConfig says. */
  public static void addRunner(RunnerState config, BuildRequest request) {
    if (!config.configPath().isEmpty()) {
      ConfigFile.merge(ConfigFile.read(config.configPath()), request.config);
    }
    ConfigFile.merge(config.configInfo(), request.config);
    ConfigFile.checkRoom(request.config);
    ConfigFile.makePathsAbsolute(request.config, "");
    add(request, "parallel.workers_num", config.workersNum());
    add(request, "parallel.device_ids", joined(config.deviceIds()));
    if (config.context() != null) {
      addContext(config.context(), request);
    }
  }

  /** Adds what an MSContext says; only what was set, as the worker knows the defaults. */
  public static void addContext(ContextState context, BuildRequest request) {
    if (context.devices().isEmpty()) {
      throw Errors.wrong(
          "the context has no device; add one: context.addDeviceInfo(DeviceType.DT_CPU, false, 0)");
    }
    checkOrder(context.devices());
    addDevice(chosen(context.devices(), request.isRunner), request);
    add(request, "cpu.thread_num", context.threadNum());
    add(request, "cpu.inter_op_parallel_num", context.interOpParallelNum());
    add(request, "cpu.thread_affinity_mode", context.affinityMode());
    add(request, "cpu.thread_affinity_core_list", joined(context.affinityCores()));
  }

  private static boolean isMissing(String path) {
    try {
      return Files.notExists(Path.of(path));
    } catch (InvalidPathException error) {
      return false; // the locale has no such letters; the worker, which will see, needs none
    }
  }

  /** The guides promise an error for a GPU behind the CPU: one of them would be left unused. */
  private static void checkOrder(List<ContextState.Device> devices) {
    boolean hasCpu = false;
    for (int i = 0; i < devices.size(); i++) {
      hasCpu = hasCpu || devices.get(i).type() == DeviceType.DT_CPU;
      if (hasCpu && devices.get(i).type() == DeviceType.DT_GPU) {
        throw Errors.wrong("device " + i
            + " of the context is a GPU behind the CPU; add DeviceType.DT_GPU first and DT_CPU"
            + " after it");
      }
    }
  }

  /** The first; but a runner's list may have the CPU before the Ascend device that is meant. */
  private static ContextState.Device chosen(List<ContextState.Device> devices, boolean isRunner) {
    return devices.stream()
        .filter(device -> isRunner && device.type() != DeviceType.DT_CPU)
        .findFirst()
        .orElse(devices.get(0));
  }

  private static void addDevice(ContextState.Device device, BuildRequest request) {
    String float16 = device.isFloat16() ? "preferred_fp16" : "";
    switch (device.type()) {
      case DeviceType.DT_CPU -> {
        add(request, "target", "cpu");
        add(request, "cpu.precision_mode", float16);
      }
      case DeviceType.DT_GPU -> {
        add(request, "target", "gpu");
        add(request, "gpu.precision_mode", float16);
      }
      case DeviceType.DT_ASCEND -> {
        add(request, "target", "ascend");
        if (device.ascend() == null) {
          add(request, "ascend.precision_mode", float16);
        } else {
          addAscend(device.ascend(), request);
        }
      }
      default ->
        throw Errors.unavailable("device type " + device.type()
            + " is not supported; use DeviceType.DT_CPU, DT_GPU or DT_ASCEND");
    }
  }

  private static void addAscend(AscendDeviceInfo info, BuildRequest request) {
    add(request, "ascend.device_id", info.getDeviceID());
    add(request, "ascend.rank_id", info.getRankID());
    add(request, "ascend.provider", info.getProvider());
    add(request, "ascend.precision_mode", info.getPrecisionMode());
    Map<String, String> entries = new HashMap<>();
    entries.put("input_format", info.getInputFormat());
    entries.put("input_shape", info.getInputShape());
    entries.put("dynamic_batch_size", joined(info.getDynamicBatchSize()));
    entries.put("dynamic_image_size", info.getDynamicImageSize());
    entries.put("insert_op_config_file_path", info.getInsertOpConfigPath());
    entries.put("op_select_impl_mode", info.getOpSelectImplMode());
    entries.put("fusion_switch_config_file_path", info.getFusionSwitchConfigPath());
    entries.put("buffer_optimize_mode", info.getBufferOptimizeMode());
    entries.values().removeIf(value -> value == null || value.isEmpty());
    if (!info.getInputShapeMap().isEmpty()) {
      Log.warning("AscendDeviceInfo.setInputShapeMap has no effect; use setInputShape");
    }
    if (info.getOutputType() != 0) {
      Log.warning("AscendDeviceInfo.setOutputType has no effect: outputs have the model's types");
    }
    Map<String, String> section =
        request.config.computeIfAbsent("ascend_context", name -> new LinkedHashMap<>());
    entries.forEach(section::putIfAbsent); // the user's own entry counts
  }

  private static void add(BuildRequest request, String name, String value) {
    if (value != null && !value.isEmpty()) {
      request.settings.add(new BuildRequest.Setting(name, value));
    }
  }

  private static void add(BuildRequest request, String name, int number) {
    if (number != 0) {
      add(request, name, Integer.toString(number));
    }
  }

  private static String joined(List<Integer> numbers) {
    return numbers.stream().map(String::valueOf).collect(Collectors.joining(","));
  }
}
