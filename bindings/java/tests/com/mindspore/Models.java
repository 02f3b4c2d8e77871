package com.mindspore;

import com.mindspore.check.Check;
import com.mindspore.config.DeviceType;
import com.mindspore.config.MSContext;
import com.mindspore.config.ModelType;
import com.mindspore.config.RunnerConfig;
import com.mindspore.internal.wire.Session;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;

/** What tests of models share: files, contexts, tensors with numbers in them. */
final class Models {
  static final float[] SIX = {1, 2, 3, 4, 5, 6};
  static final int WIDE = 1 << 20; // elements of the model "wide"

  private Models() {}

  /** A file of the folder that tests/support/binding_models.py makes. */
  static String file(String name) {
    String folder = System.getenv("MSLITE_MODELS");
    if (folder == null) {
      Check.skip("MSLITE_MODELS does not say where the models are");
    }
    return folder + "/" + name;
  }

  static MSContext cpu() {
    MSContext context = new MSContext().throwing();
    context.init(1, 0);
    context.addDeviceInfo(DeviceType.DT_CPU, false, 0);
    return context;
  }

  static Model built(String name) {
    Model model = new Model().throwing();
    int type = name.endsWith(".onnx") ? ModelType.MT_ONNX : ModelType.MT_MINDIR;
    model.build(file(name), type, cpu());
    return model;
  }

  static RunnerConfig config(int workers) {
    RunnerConfig config = new RunnerConfig().throwing();
    config.init(cpu());
    config.setWorkersNum(workers);
    return config;
  }

  static ModelParallelRunner runner(String name) {
    ModelParallelRunner runner = new ModelParallelRunner().throwing();
    runner.init(file(name), config(2));
    return runner;
  }

  /** The only output for this only input. */
  static float[] ask(ModelParallelRunner runner, int[] shape, float[] values) {
    List<MSTensor> inputs = runner.getInputs();
    List<MSTensor> outputs = new ArrayList<>();
    MSTensor input = inputs.get(0).throwing();
    input.setShape(shape);
    input.setData(values);
    try {
      runner.predict(inputs, outputs);
      return outputs.get(0).getFloatData();
    } finally {
      inputs.forEach(MSTensor::free);
      outputs.forEach(MSTensor::free);
    }
  }

  /** What the model "dense" makes of rows of three. */
  static float[] dense(float... x) {
    float[] y = new float[x.length / 3 * 4];
    for (int row = 0; row < x.length / 3; ++row) {
      Arrays.fill(y, row * 4, row * 4 + 4, x[row * 3] + x[row * 3 + 1] + x[row * 3 + 2] + 1);
    }
    return y;
  }

  static float[] filled(int count, float value) {
    float[] values = new float[count];
    Arrays.fill(values, value);
    return values;
  }

  /** The worker of this process. */
  static long worker() {
    return Long.parseLong(Session.current().info(0, "pid"));
  }

  /** Kills the worker, and waits for its end. */
  static void killWorker() {
    Optional<ProcessHandle> worker = ProcessHandle.of(worker());
    worker.orElseThrow().destroyForcibly();
    worker.orElseThrow().onExit().join();
  }
}
