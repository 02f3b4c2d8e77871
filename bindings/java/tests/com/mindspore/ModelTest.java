package com.mindspore;

import com.mindspore.check.Check;
import com.mindspore.config.MSContext;
import com.mindspore.config.ModelType;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

public final class ModelTest {
  private static final float[] SUMS = Models.dense(Models.SIX);

  private ModelTest() {}

  private static String failureOfBuild(String path, int type, MSContext context) {
    try (Model model = new Model()) {
      Check.that(!model.build(path, type, context), "it was built");
      Check.equal(0, model.getInputs().size());
      return model.lastError();
    }
  }

  public static void predictsWhatTheModelComputes() {
    try (Model model = Models.built("dense.mindir")) {
      MSTensor input = model.getInputs().get(0);
      Check.that(input.setData(Models.SIX), input.lastError());
      Check.that(model.predict(), model.lastError());
      try (MSTensor output = model.getOutputs().get(0)) {
        Check.equal(new int[] {2, 4}, output.getShape());
        Check.equal(SUMS, output.getFloatData());
      }
    }
  }

  public static void takesABufferAndANewOneTheNextTime() {
    try (Model model = Models.built("dense.mindir")) {
      MSTensor input = model.getInputs().get(0);
      ByteBuffer buffer = ByteBuffer.allocateDirect(24).order(ByteOrder.LITTLE_ENDIAN);
      for (float start : new float[] {0, 10}) {
        for (int i = 0; i < 6; ++i) {
          buffer.putFloat(4 * i, start + i);
        }
        Check.that(input.setData(buffer), input.lastError());
        Check.that(model.runStep(), model.lastError());
        Check.equal(4 + 3 * start, model.getOutputs().get(0).getFloatData()[0]);
      }
    }
  }

  public static void anArrayIsReadWhenThePredictionBegins() {
    try (Model model = Models.built("dense.mindir")) {
      float[] values = Models.filled(6, 0);
      Check.that(model.getInputs().get(0).setData(values), "set");
      for (float value : new float[] {1, 2}) {
        java.util.Arrays.fill(values, value);
        model.predict();
        Check.equal(3 * value + 1, model.getOutputs().get(0).getFloatData()[7]);
      }
    }
  }

  public static void inputsAreTheSameEveryTimeAndOutputsNew() {
    try (Model model = Models.built("dense.mindir")) {
      MSTensor input = model.getInputs().get(0);
      Check.that(input == model.getInputs().get(0), "another input");
      Check.that(input == model.getInputByTensorName("x"), "another input by its name");
      Check.that(model.getOutputs().get(0) != model.getOutputs().get(0), "the same output");
      Check.equal(null, model.getInputByTensorName("no such"));
      Check.equal(null, model.getInputByTensorName(null));
    }
  }

  public static void outputsAreFoundByName() {
    try (Model model = Models.built("two.mindir")) {
      List<String> names = model.getOutputTensorNames();
      Check.equal(2, names.size());
      for (int i = 0; i < 2; ++i) {
        MSTensor output = model.getOutputByTensorName(names.get(i));
        Check.equal(names.get(i), output.tensorName());
        Check.equal(model.getOutputs().get(i).getShape(), output.getShape());
      }
      Check.equal(null, model.getOutputByTensorName("no such"));
      Check.equal(List.of(), model.getOutputsByNodeName(names.get(0)));
    }
  }

  public static void aResultStaysWhenTheNextOneComes() {
    try (Model model = Models.built("wide.mindir")) {
      MSTensor input = model.getInputs().get(0);
      input.setData(Models.filled(Models.WIDE, 1));
      model.predict();
      MSTensor first = model.getOutputs().get(0);
      input.setData(Models.filled(Models.WIDE, 2));
      model.predict();
      Check.equal(1f, first.getFloatData()[Models.WIDE - 1]);
      Check.equal(2f, model.getOutputs().get(0).getFloatData()[Models.WIDE - 1]);
      first.free();
    }
  }

  public static void resizesAndForgetsTheData() {
    try (Model model = Models.built("any.mindir")) {
      List<MSTensor> inputs = model.getInputs();
      Check.that(model.resize(inputs, new int[][] {{2, 3}}), model.lastError());
      Check.equal(new int[] {2, 3}, inputs.get(0).getShape());
      Check.equal(new int[] {2, 4}, model.getOutputs().get(0).getShape());
      inputs.get(0).setData(Models.SIX);
      model.predict();
      Check.equal(SUMS, model.getOutputs().get(0).getFloatData());
      model.resize(inputs, new int[][] {{1, 3}});
      Check.equal(4, model.getOutputs().get(0).elementsNum());
      Check.contains(Check.throwsA(MSException.class, model::predict).getMessage(), "has no data");
    }
  }

  public static void refusesShapesThatCannotBe() {
    try (Model model = Models.built("any.mindir")) {
      List<MSTensor> inputs = model.getInputs();
      int[][][] wrong = {{}, {{1, 3}, {1, 3}}, {{0, 3}}, {{-1, 3}}, {null}, null, {{1, 7}}};
      for (int[][] dims : wrong) {
        Check.throwsA(MSException.class, () -> model.resize(inputs, dims));
      }
      Check.throwsA(MSException.class, () -> model.resize(null, new int[][] {{1, 3}}));
      model.resize(inputs, new int[][] {{1, 3}});
      inputs.get(0).setData(new float[] {1, 1, 1});
      model.predict(); // it is none the worse
      Check.equal(Models.dense(1, 1, 1), model.getOutputs().get(0).getFloatData());
    }
  }

  public static void isBuiltFromMemory() throws IOException {
    try (FileChannel file = FileChannel.open(Path.of(Models.file("digits.mindir")));
        Model model = new Model().throwing(); MSContext context = Models.cpu()) {
      MappedByteBuffer bytes = file.map(FileChannel.MapMode.READ_ONLY, 0, file.size());
      bytes.position(10); // which does not matter
      model.build(bytes, ModelType.MT_MINDIR, context);
      Check.equal(10, bytes.position());
      Check.equal(new int[] {-1, 1, 8, 8}, model.getInputs().get(0).getShape());
    }
  }

  public static void saysWhatIsWrongWithABuild() {
    MSContext context = Models.cpu();
    String dense = Models.file("dense.mindir");
    MSContext noDevice = new MSContext();
    noDevice.init();
    Check.contains(failureOfBuild("/no/such.mindir", 0, context), "/no/such.mindir");
    Check.contains(failureOfBuild(Models.file("garbage.mindir"), 0, context), "garbage.mindir");
    Check.contains(failureOfBuild("", 0, context), "empty");
    Check.contains(failureOfBuild(null, 0, context), "null");
    Check.contains(failureOfBuild(dense, 0, null), "context");
    Check.contains(failureOfBuild(dense, 0, new MSContext()), "context");
    Check.contains(failureOfBuild(dense, 0, noDevice), "no device");
    Check.contains(failureOfBuild(dense, 5, context), "type of the model is 5");
    Check.contains(failureOfBuild(dense, -1, context), "type of the model is -1");
    Check.contains(failureOfBuild(dense, ModelType.MT_AIR, context), "MT_AIR");
    Check.contains(failureOfBuild(dense, ModelType.MT_OM, context), "as MindIR");
  }

  public static void aFailedBuildMayBeTriedAgain() {
    try (Model model = new Model()) {
      Check.that(!model.build("/no/such.mindir", 0, Models.cpu()), "it was built");
      Check.that(model.build(Models.file("dense.mindir"), 0, Models.cpu()), model.lastError());
      Check.equal("", model.lastError());
      Check.that(!model.build(Models.file("dense.mindir"), 0, Models.cpu()), "built twice");
      Check.contains(model.lastError(), "built already");
    }
  }

  public static void thePathMayHaveAnyLetters() {
    try (Model model = new Model()) { // whatever the locale: Java's own files depend on it
      String path = Models.file("mod\u00e8le \u6a21\u578b.mindir");
      Check.that(model.build(path, 0, Models.cpu()), model.lastError());
    }
  }

  public static void wrongDataIsRefusedBeforeAnythingRuns() {
    try (Model model = Models.built("dense.mindir")) {
      MSTensor input = model.getInputs().get(0);
      Check.throwsA(MSException.class, model::predict); // no data
      Check.that(!input.setData(new byte[23]), "23 bytes");
      Check.that(!input.setData(new float[7]), "seven floats");
      Check.that(!input.setData(new int[6]), "ints for floats");
      Check.that(!input.setData(ByteBuffer.allocate(24)), "a buffer on the heap");
      MSException error = Check.throwsA(MSException.class, model::predict);
      Check.equal("InputError", error.kind());
      Check.contains(error.getMessage(), "input 0");
      input.setData(Models.SIX);
      model.predict();
    }
  }

  public static void configurationCountsBeforeTheBuildOnly() throws IOException {
    Path file = Files.createTempFile("mslite-test", ".ini");
    try (Model model = new Model().throwing()) {
      Files.writeString(file, "[ascend_context]\nvariable_weights_list=w\n");
      model.loadConfig(file.toString());
      model.updateConfig("other", new HashMap<>(Map.of("some", "thing")));
      Check.throwsA(MSException.class, () -> model.loadConfig("/no/such.ini"));
      Check.throwsA(MSException.class, () -> model.loadConfig(null));
      Check.throwsA(MSException.class, () -> model.updateConfig(null, null));
      model.build(Models.file("dense.mindir"), 0, Models.cpu());
      MSException late = Check.throwsA(MSException.class, () -> model.loadConfig(file.toString()));
      Check.contains(late.getMessage(), "too late");
    } finally {
      Files.delete(file);
    }
  }

  public static void aConfigurationThatMakesNoSenseFailsTheBuild() {
    try (Model model = new Model()) {
      model.updateConfig("ascend_context", new HashMap<>(Map.of("variable_weights_list", "nope")));
      Check.that(!model.build(Models.file("dense.mindir"), 0, Models.cpu()), "it was built");
      Check.contains(model.lastError(), "nope");
    }
  }

  public static void aKeyThatIsNoneIsRefused() {
    try (Model model = new Model()) {
      String path = Models.file("dense.mindir");
      char[] key = {'\u6a21'};
      Check.that(!model.build(path, 0, Models.cpu(), key, "AES-GCM", ""), "built");
      Check.contains(model.lastError(), "char 0 of the key");
      key = "0123456789abcdef".toCharArray();
      Check.that(!model.build(path, 0, Models.cpu(), key, "AES-GCM", ""), "built");
      Check.that(!model.lastError().isEmpty(), "no reason");
      Check.that(model.build(path, 0, Models.cpu(), null, null, null), model.lastError());
    }
  }

  public static void freeingIsHarmlessInAnyOrderAndTwice() {
    Model model = Models.built("dense.mindir");
    MSTensor input = model.getInputs().get(0);
    input.setData(Models.SIX);
    model.predict();
    MSTensor output = model.getOutputs().get(0);
    input.free();
    Check.that(model.getInputs().get(0) != input, "a freed input is given again");
    model.free();
    model.free();
    input.free();
    Check.equal(SUMS, output.getFloatData());
    output.free();
    output.free();
    Check.equal(0, model.getInputs().size());
    Check.equal(0, model.getOutputs().size());
    Check.equal(null, model.getOutputByTensorName("y"));
    MSException error = Check.throwsA(MSException.class, model::predict);
    Check.equal("ClosedError", error.kind());
    model.build(Models.file("dense.mindir"), 0, Models.cpu()); // and once more
    model.free();
  }

  public static void threadsMayShareOne() {
    try (Model model = Models.built("dense.mindir")) {
      model.getInputs().get(0).setData(Models.SIX);
      Check.threads(8, i -> {
        for (int j = 0; j < 20; ++j) {
          model.predict();
          try (MSTensor output = model.getOutputs().get(0)) {
            Check.equal(SUMS, output.getFloatData());
          }
        }
      });
    }
  }

  public static void errorsAreTheThreadsOwn() {
    try (Model model = new Model()) {
      Check.threads(4, i -> {
        String path = "/no/such" + i;
        Check.that(!model.build(path, 0, Models.cpu()), "it was built");
        Check.contains(model.lastError(), path + "'");
      });
      Check.equal("", model.lastError());
    }
  }

  private static void turn(Model model, long times) {
    model.getInputs().get(0).setData(new long[] {times});
    model.getInputs().get(1).setData(new float[] {3, 4});
    model.predict();
  }

  public static void aPredictEndsByItsTimeoutAndTheNextOneWorks() {
    try (Model model = new Model().throwing()) {
      model.updateConfig("parallel", new HashMap<>(Map.of("timeout_s", "0.2")));
      model.build(Models.file("loop.onnx"), ModelType.MT_ONNX, Models.cpu());
      MSException late = Check.throwsA(MSException.class, () -> turn(model, Long.MAX_VALUE / 2));
      Check.equal("RequestTimeoutError", late.kind());
      Check.equal(0x1000000E, late.code());
      Check.eventually(() -> isInTime(model, 3), "the next one ends in time");
      try (MSTensor output = model.getOutputs().get(0)) {
        Check.equal(new float[] {3, 4}, output.getFloatData());
      }
    }
  }

  private static boolean isInTime(Model model, long turns) {
    try {
      turn(model, turns);
      return true;
    } catch (MSException late) { // on a busy machine
      Check.equal("RequestTimeoutError", late.kind());
      return false;
    }
  }

  public static void aTimeoutThatIsNoTimeIsRefused() {
    for (String text : new String[] {"soon", "-1", "", "1 s", "NaN"}) {
      try (Model model = new Model().throwing()) {
        model.updateConfig("parallel", new HashMap<>(Map.of("timeout_s", text)));
        MSException wrong = Check.throwsA(MSException.class,
            () -> model.build(Models.file("dense.mindir"), ModelType.MT_MINDIR, Models.cpu()));
        Check.contains(wrong.getMessage(), "[parallel] timeout_s");
      }
    }
  }
}
