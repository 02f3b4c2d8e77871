package com.mindspore.lite.demo;

import com.mindspore.MSTensor;
import com.mindspore.ModelParallelRunner;
import com.mindspore.config.DataType;
import com.mindspore.config.DeviceType;
import com.mindspore.config.MSContext;
import com.mindspore.config.RunnerConfig;
import com.mindspore.config.Version;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Concurrent quick start: five threads share one runner, and each sends it two requests. The model
 * has one input, of float32. Without a file for it, its values are random. What goes wrong is in
 * the log, on standard error.
 *
 * <pre>
 *   mslite sdk java DIR; export LITE_HOME=DIR
 *   mvn -f examples/java/quick_start_parallel package
 *   java -cp "$LITE_HOME/runtime/lib/*:examples/java/quick_start_parallel/target/*" \
 *     com.mindspore.lite.demo.Main mindspore_lite/cli/data/digits.mindir \
 *     examples/quick_start/input.bin
 * </pre>
 */
public final class Main {
  private static final int WORKERS = 2; // requests that run at the same time
  private static final int CLIENTS = 5;
  private static final int REQUESTS = 2; // of each client
  private static final int MOST_SHOWN = 5;

  private Main() {}

  public static void main(String[] args) throws IOException, InterruptedException {
    System.out.println(Version.version());
    if (args.length == 0) {
      System.err.println("Usage: Main MODEL [INPUT.bin]");
      System.exit(2);
    }
    ModelParallelRunner runner = new ModelParallelRunner();
    boolean done = init(runner, args[0]) && serve(runner, args.length > 1 ? args[1] : null);
    runner.free();
    if (done) {
      System.out.println("========== model parallel runner predict success ==========");
    }
    System.exit(done ? 0 : 1);
  }

  /** Loads and compiles the model once, for all clients. */
  private static boolean init(ModelParallelRunner runner, String path) {
    MSContext context = new MSContext();
    RunnerConfig config = new RunnerConfig();
    boolean done = context.init(1, 0) && context.addDeviceInfo(DeviceType.DT_CPU, false, 0)
        && config.init(context);
    config.setWorkersNum(WORKERS);
    done = done && runner.init(path, config);
    config.free(); // and the context, which is the config's
    return done;
  }

  private static boolean serve(ModelParallelRunner runner, String path)
      throws IOException, InterruptedException {
    List<MSTensor> inputs = ownInputs(runner);
    if (inputs.size() != 1 || inputs.get(0).getDataType() != DataType.kNumberTypeFloat32) {
      System.err.println("The model must have one input, of float32.");
      return false;
    }
    int size = (int) inputs.get(0).size();
    inputs.get(0).free();
    byte[] data = path == null ? random(size) : Files.readAllBytes(Path.of(path));
    AtomicInteger answered = new AtomicInteger();
    List<Thread> clients = new ArrayList<>();
    for (int client = 0; client < CLIENTS; client++) {
      Thread thread = new Thread(() -> {
        for (int request = 0; request < REQUESTS && ask(runner, data); request++) {
          answered.incrementAndGet();
        }
      });
      thread.start();
      clients.add(thread);
    }
    for (Thread client : clients) {
      client.join();
    }
    return answered.get() == CLIENTS * REQUESTS;
  }

  /** Every call gives new tensors, which no other thread has. Dims that are left open are 1. */
  private static List<MSTensor> ownInputs(ModelParallelRunner runner) {
    List<MSTensor> inputs = runner.getInputs();
    for (MSTensor input : inputs) {
      int[] shape = input.getShape();
      for (int axis = 0; axis < shape.length; axis++) {
        shape[axis] = shape[axis] == -1 ? 1 : shape[axis];
      }
      input.setShape(shape);
    }
    return inputs;
  }

  private static byte[] random(int size) {
    Random random = new Random();
    ByteBuffer data = ByteBuffer.allocate(size).order(ByteOrder.LITTLE_ENDIAN);
    while (data.hasRemaining()) {
      data.putFloat(random.nextFloat());
    }
    return data.array();
  }

  /** One request: fills an input, waits for the answer and shows it. */
  private static boolean ask(ModelParallelRunner runner, byte[] data) {
    List<MSTensor> inputs = ownInputs(runner);
    List<MSTensor> outputs = new ArrayList<>();
    boolean done = inputs.get(0).setData(data) && runner.predict(inputs, outputs);
    for (MSTensor output : outputs) {
      System.out.println(described(output));
      output.free();
    }
    inputs.get(0).free();
    return done;
  }

  private static String described(MSTensor output) {
    StringBuilder text = new StringBuilder("out tensor shape: [");
    for (int dim : output.getShape()) {
      text.append(dim).append(',');
    }
    text.append("] and out data:");
    float[] values = output.getFloatData();
    for (int i = 0; i < Math.min(values.length, MOST_SHOWN); i++) {
      text.append(' ').append(values[i]);
    }
    return text.toString();
  }
}
