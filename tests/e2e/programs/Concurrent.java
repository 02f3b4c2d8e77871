import com.mindspore.MSTensor;
import com.mindspore.Model;
import com.mindspore.ModelParallelRunner;
import com.mindspore.config.DataType;
import com.mindspore.config.DeviceType;
import com.mindspore.config.MSContext;
import com.mindspore.config.ModelType;
import com.mindspore.config.RunnerConfig;
import com.mindspore.config.Version;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;

/**
 * The concurrent program of the original's tutorial, with the init that its text leaves out: its
 * calls, in its order, with its habits. A local variable hides the static outputs, so that predict
 * gets an empty list, whose tensors nobody frees; the config is freed while the runner is in use;
 * two imports are not used. And one habit more: the context and the runner are freed twice.
 */
public class Concurrent {
  private static ModelParallelRunner runner;
  private static List<MSTensor> inputs;
  private static List<MSTensor> outputs;

  private static void freeTensor() {
    for (int i = 0; i < inputs.size(); i++) {
      inputs.get(i).free();
    }
    for (int i = 0; i < outputs.size(); i++) {
      outputs.get(i).free();
    }
  }

  private static ByteBuffer halves(int count) {
    ByteBuffer data = ByteBuffer.allocateDirect(count * Float.BYTES);
    data.order(ByteOrder.LITTLE_ENDIAN);
    for (int i = 0; i < count; i++) {
      data.putFloat(0.5f);
    }
    return data;
  }

  public static void main(String[] args) {
    System.out.println(Version.version());
    MSContext context = new MSContext();
    context.init(1, 0);
    boolean ret = context.addDeviceInfo(DeviceType.DT_CPU, false, 0);
    if (!ret) {
      System.err.println("init context failed");
      context.free();
      return;
    }
    RunnerConfig config = new RunnerConfig();
    config.init(context);
    config.setWorkersNum(2);

    runner = new ModelParallelRunner();
    ret = runner.init(args[0], config);
    if (!ret) {
      System.err.println("ModelParallelRunner init failed.");
      runner.free();
      return;
    }

    inputs = runner.getInputs();
    if (inputs.size() != 1 || inputs.get(0).getDataType() != DataType.kNumberTypeFloat32) {
      System.err.println("one input of float32 is wanted");
      return;
    }
    inputs.get(0).setData(halves(inputs.get(0).elementsNum()));
    outputs = runner.getOutputs();
    List<MSTensor> outputs = new ArrayList<>();

    ret = runner.predict(inputs, outputs);
    if (!ret) {
      System.err.println("MindSpore Lite predict failed.");
      freeTensor();
      runner.free();
      return;
    }
    System.out.println("========== model parallel runner predict success ==========");
    for (float value : outputs.get(0).getFloatData()) {
      System.out.println(value);
    }
    config.free();
    context.free();
    freeTensor();
    runner.free();
    runner.free();
  }
}
