import com.mindspore.MSTensor;
import com.mindspore.Model;
import com.mindspore.ModelParallelRunner;
import com.mindspore.config.AscendDeviceInfo;
import com.mindspore.config.DataType;
import com.mindspore.config.DeviceType;
import com.mindspore.config.MSContext;
import com.mindspore.config.ModelType;
import com.mindspore.config.RunnerConfig;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * Files of inputs in, the outputs compared with those of a file of names and values: the calls of
 * the original's test program. Data is bytes; an output is found by its name; on Ascend, or by a
 * runner first, where the last argument says so.
 */
public class Accuracy {
  private static Model model;

  private static boolean fill(List<MSTensor> inputs, String[] files) throws IOException {
    for (int index = 0; index < inputs.size(); index++) {
      MSTensor input = inputs.get(index);
      byte[] data = Files.readAllBytes(Path.of(files[index]));
      if (input.getDataType() != DataType.kNumberTypeFloat32 || input.size() != data.length) {
        return false;
      }
      input.setData(data);
    }
    return true;
  }

  private static void runner(String path, String[] files) throws IOException {
    MSContext context = new MSContext();
    context.init(1, 0);
    context.addDeviceInfo(DeviceType.DT_CPU, false, 0);
    RunnerConfig config = new RunnerConfig();
    config.init(context);
    config.setWorkersNum(2);
    ModelParallelRunner runner = new ModelParallelRunner();
    if (!runner.init(path, config)) {
      runner.free();
      return;
    }
    List<MSTensor> inputs = runner.getInputs();
    List<MSTensor> outputs = new ArrayList<>();
    boolean ret = fill(inputs, files) && runner.predict(inputs, outputs);
    config.free();
    for (MSTensor tensor : inputs) {
      tensor.free();
    }
    for (MSTensor tensor : outputs) {
      tensor.free();
    }
    runner.free();
    if (ret) {
      System.out.println("========== model parallel runner predict success ==========");
    }
  }

  /** Lines in turn: the name of an output and more, and its values. */
  private static double worst(String path) throws IOException {
    double worst = 0;
    List<String> lines = Files.readAllLines(Path.of(path));
    for (int line = 0; line < lines.size(); line += 2) {
      MSTensor output = model.getOutputByTensorName(lines.get(line).split(" ")[0]);
      String[] wanted = lines.get(line + 1).split(" ");
      float[] got = output.getFloatData();
      for (int i = 0; i < wanted.length; i++) {
        worst = Math.max(worst, Math.abs(got[i] - Float.parseFloat(wanted[i])));
      }
      System.out.println(output.tensorName() + " was compared: " + wanted.length + " values");
    }
    return worst;
  }

  public static void main(String[] args) throws IOException {
    String[] files = args[1].split(",");
    if (args.length == 5 && args[4].equals("Runner")) {
      runner(args[0], files);
    }
    MSContext context = new MSContext();
    boolean ret;
    if (args.length == 5 && args[4].equals("Ascend")) {
      context.init();
      AscendDeviceInfo ascend = new AscendDeviceInfo();
      ascend.setDeviceID(Integer.valueOf(System.getenv().getOrDefault("ASCEND_DEVICE_ID", "0")));
      ret = context.addDeviceInfo(ascend);
    } else {
      context.init(1, 0);
      ret = context.addDeviceInfo(DeviceType.DT_CPU, false, 0);
    }
    model = new Model();
    ret = ret && model.build(args[0], ModelType.MT_MINDIR, context);
    if (!ret) {
      System.err.println("Compile graph failed.");
      model.free();
      System.exit(1);
    }
    if (!fill(model.getInputs(), files) || !model.predict()) {
      System.err.println("MindSpore Lite run failed.");
      model.free();
      System.exit(1);
    }
    System.out.println("MindSpore Lite infer success!");
    double worst = worst(args[2]);
    model.free();
    if (worst > Float.parseFloat(args[3])) {
      System.err.println("The model accuracy error is too large: " + worst);
      System.exit(1);
    }
  }
}
