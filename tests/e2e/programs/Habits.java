import com.mindspore.MSTensor;
import com.mindspore.Model;
import com.mindspore.config.DataType;
import com.mindspore.config.DeviceType;
import com.mindspore.config.MSContext;
import com.mindspore.config.ModelType;
import com.mindspore.config.Version;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;

/**
 * One model, with the calls and the habits of the original's quick start: the model is static, the
 * context is never freed, an input is freed by the program and again with the model, and the output
 * is read after it was asked for, whatever became of that.
 */
public class Habits {
  private static Model model;

  private static boolean compile(String path) {
    MSContext context = new MSContext();
    context.init();
    if (!context.addDeviceInfo(DeviceType.DT_CPU, false, 0)) {
      context.free();
      return false;
    }
    model = new Model();
    if (!model.build(path, ModelType.MT_MINDIR, context)) {
      System.err.println("Compile graph failed");
      model.free();
      return false;
    }
    return true;
  }

  private static boolean run() {
    MSTensor input = model.getInputs().get(0);
    if (input.getDataType() != DataType.kNumberTypeFloat32) {
      return false;
    }
    float[] values = new float[input.elementsNum()];
    Arrays.fill(values, 0.5f);
    ByteBuffer data = ByteBuffer.allocateDirect(values.length * Float.BYTES);
    data.order(ByteOrder.LITTLE_ENDIAN).asFloatBuffer().put(values);
    input.setData(data);
    if (!model.predict()) {
      input.free();
      return false;
    }
    MSTensor output = model.getOutputs().get(0);
    StringBuilder text = new StringBuilder("out tensor shape: [");
    for (int dim : output.getShape()) {
      text.append(dim).append(",");
    }
    text.append("] and out data:");
    float[] result = output.getFloatData();
    for (int i = 0; i < 50 && i < output.elementsNum(); i++) {
      text.append(" ").append(result[i]);
    }
    System.out.println(text);
    input.free();
    output.free();
    return true;
  }

  public static void main(String[] args) {
    System.out.println(Version.version());
    if (!compile(args[0])) {
      System.err.println("MindSpore Lite compile failed.");
      return;
    }
    if (!run()) {
      System.err.println("MindSpore Lite run failed.");
    }
    model.free();
    model.free();
  }
}
