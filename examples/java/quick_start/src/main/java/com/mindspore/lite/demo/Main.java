package com.mindspore.lite.demo;

import com.mindspore.MSTensor;
import com.mindspore.Model;
import com.mindspore.config.DataType;
import com.mindspore.config.DeviceType;
import com.mindspore.config.MSContext;
import com.mindspore.config.ModelType;
import com.mindspore.config.Version;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Random;

/**
 * Quick start: a model and files of raw float32 values in, its first output printed. Without a file
 * for it, an input has random values. What goes wrong is in the log, on standard error.
 *
 * <pre>
 *   mslite sdk java DIR; export LITE_HOME=DIR
 *   mvn -f examples/java/quick_start package
 *   java -cp "$LITE_HOME/runtime/lib/*:examples/java/quick_start/target/*" \
 *     com.mindspore.lite.demo.Main mindspore_lite/cli/data/digits.mindir \
 *     examples/quick_start/input.bin
 * </pre>
 */
public final class Main {
  private static final int MOST_SHOWN = 50;

  private Main() {}

  public static void main(String[] args) {
    System.out.println(Version.version());
    if (args.length == 0) {
      System.err.println("Usage: Main MODEL [INPUT.bin ...]");
      System.exit(2);
    }
    Model model = new Model();
    boolean done = build(model, args[0]) && fill(model, args) && model.predict() && show(model);
    model.free(); // and its inputs
    System.exit(done ? 0 : 1);
  }

  private static boolean build(Model model, String path) {
    MSContext context = new MSContext();
    boolean done = context.init() && context.addDeviceInfo(DeviceType.DT_CPU, false, 0)
        && model.build(path, ModelType.MT_MINDIR, context);
    context.free(); // the model has read it
    return done && settleShapes(model);
  }

  /** A model may leave dims open, such as its batch; before it has data they must be settled. */
  private static boolean settleShapes(Model model) {
    List<MSTensor> inputs = model.getInputs();
    int[][] shapes = new int[inputs.size()][];
    boolean isOpen = false;
    for (int i = 0; i < shapes.length; i++) {
      shapes[i] = inputs.get(i).getShape();
      for (int axis = 0; axis < shapes[i].length; axis++) {
        if (shapes[i][axis] == -1) {
          shapes[i][axis] = 1;
          isOpen = true;
        }
      }
    }
    return !isOpen || model.resize(inputs, shapes);
  }

  private static boolean fill(Model model, String[] args) {
    List<MSTensor> inputs = model.getInputs();
    for (int i = 0; i < inputs.size(); i++) {
      MSTensor input = inputs.get(i);
      if (input.getDataType() != DataType.kNumberTypeFloat32) {
        System.err.println("Input " + input.tensorName() + " is not of float32.");
        return false;
      }
      boolean hasFile = i + 1 < args.length;
      ByteBuffer data = hasFile ? read(args[i + 1]) : random(input.elementsNum());
      if (data == null || !input.setData(data)) {
        return false;
      }
    }
    return true;
  }

  /** The bytes of a file as they are: float32 values have their lowest byte first. */
  private static ByteBuffer read(String path) {
    try {
      byte[] bytes = Files.readAllBytes(Path.of(path));
      return ByteBuffer.allocateDirect(bytes.length).put(bytes);
    } catch (IOException error) {
      System.err.println("Input file " + path + " cannot be read: " + error);
      return null;
    }
  }

  private static ByteBuffer random(int count) {
    Random random = new Random();
    ByteBuffer data = ByteBuffer.allocateDirect(count * Float.BYTES).order(ByteOrder.LITTLE_ENDIAN);
    while (data.hasRemaining()) {
      data.putFloat(random.nextFloat());
    }
    return data;
  }

  private static boolean show(Model model) {
    MSTensor output = model.getOutputs().get(0);
    float[] values = output.getFloatData();
    StringBuilder text = new StringBuilder("out tensor shape: [");
    for (int dim : output.getShape()) {
      text.append(dim).append(',');
    }
    text.append("] and out data:");
    for (int i = 0; i < Math.min(values.length, MOST_SHOWN); i++) {
      text.append(' ').append(values[i]);
    }
    System.out.println(text);
    output.free();
    return values.length > 0; // none where it is not of float32
  }
}
