package com.mindspore.lite.demo;

import com.mindspore.MSTensor;
import com.mindspore.Model;
import com.mindspore.check.Check;
import com.mindspore.config.DeviceType;
import com.mindspore.config.MSContext;
import com.mindspore.config.ModelType;
import java.util.List;

/** What the original's own tests ask of it, from a package of a user's, as programs do. */
public final class OriginalTest {
  private OriginalTest() {}

  private static String digits() {
    String path = System.getenv("MSLITE_MODEL");
    if (path == null) {
      Check.skip("MSLITE_MODEL does not say where the model is");
    }
    return path;
  }

  private static MSContext context() {
    MSContext context = new MSContext();
    Check.that(context.init(1, 0), "init");
    Check.that(context.addDeviceInfo(DeviceType.DT_CPU, false, 0), "addDeviceInfo");
    return context;
  }

  private static Model built() {
    Model model = new Model();
    MSContext context = context();
    Check.that(model.build(digits(), ModelType.MT_MINDIR, context), "build");
    context.free();
    return model;
  }

  private static boolean resizedTo(Model model, int rows) {
    return model.resize(model.getInputs(), new int[][] {{rows, 1, 8, 8}});
  }

  public static void aModelNeedsADevice() {
    MSContext context = new MSContext();
    context.init();
    Model model = new Model();
    Check.that(!model.build(digits(), ModelType.MT_MINDIR, context), "no device");
    context.free();
    model.free();
  }

  public static void aModelNeedsData() {
    Model model = built();
    Check.that(resizedTo(model, 1), "resize");
    Check.that(!model.predict(), "no data");
    Check.that(!model.getInputs().get(0).setData(new byte[7]), "too few bytes");
    Check.that(!model.predict(), "still no data");
    Check.that(!model.runStep(), "nor for a step");
    Check.that(model.getInputs().get(0).setData(new byte[256]), "as many as it has");
    Check.that(model.predict(), model.lastError());
    Check.equal(new int[] {1, 10}, model.getOutputs().get(0).getShape());
    model.free();
  }

  public static void aModelKnowsItsOutputs() {
    Model model = built();
    List<String> names = model.getOutputTensorNames();
    Check.equal(1, names.size());
    Check.equal(names.get(0), model.getOutputByTensorName(names.get(0)).tensorName());
    Check.equal(null, model.getOutputByTensorName("no such output"));
    Check.equal(null, model.getInputByTensorName("no such input"));
    Check.equal(List.of(), model.getOutputsByNodeName("no such node"));
    model.free();
  }

  public static void aModelIsResized() {
    Model model = built();
    Check.that(resizedTo(model, 3), "resize");
    Check.equal(new int[] {3, 1, 8, 8}, model.getInputs().get(0).getShape());
    Check.that(model.getInputs().get(0).setData(new float[192]), "the new size");
    Check.that(model.predict(), model.lastError());
    MSTensor output = model.getOutputs().get(0);
    Check.equal(30, output.getFloatData().length);
    output.free();
    model.free();
  }
}
