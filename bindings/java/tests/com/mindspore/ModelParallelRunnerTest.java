package com.mindspore;

import com.mindspore.check.Check;
import com.mindspore.config.MSContext;
import com.mindspore.config.RunnerConfig;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;

public final class ModelParallelRunnerTest {
  private static final int[] TWO_ROWS = {2, 3};
  private static final int[] ALL = {Models.WIDE};
  private static final float[] SUMS = Models.dense(Models.SIX);

  private ModelParallelRunnerTest() {}

  private static List<MSTensor> six(ModelParallelRunner runner) {
    List<MSTensor> inputs = runner.getInputs();
    inputs.get(0).setData(Models.SIX);
    return inputs;
  }

  public static void predictsWithTheDefaults() {
    try (ModelParallelRunner runner = new ModelParallelRunner().throwing()) {
      runner.init(Models.file("dense.mindir"));
      Check.equal(SUMS, Models.ask(runner, TWO_ROWS, Models.SIX));
    }
  }

  public static void requestsMayHaveShapesOfTheirOwn() {
    try (ModelParallelRunner runner = Models.runner("any.mindir")) {
      Check.equal(
          Models.dense(1, 2, 3), Models.ask(runner, new int[] {1, 3}, new float[] {1, 2, 3}));
      Check.equal(SUMS, Models.ask(runner, TWO_ROWS, Models.SIX));
    }
  }

  public static void thirtyTwoThreadsGetTheirOwnAnswers() {
    try (ModelParallelRunner small = Models.runner("dense.mindir");
        ModelParallelRunner large = Models.runner("wide.mindir")) {
      Check.threads(32, i -> {
        float[] own = Models.filled(6, i);
        for (int j = 0; j < 10; ++j) {
          Check.equal(Models.dense(own), Models.ask(small, TWO_ROWS, own));
        }
        float[] answer = Models.ask(large, ALL, Models.filled(Models.WIDE, i));
        Check.equal((float) i, answer[0]);
        Check.equal((float) i, answer[Models.WIDE - 1]);
      });
    }
  }

  public static void givenOutputsTakeTheResults() {
    try (ModelParallelRunner runner = Models.runner("dense.mindir")) {
      List<MSTensor> outputs = runner.getOutputs();
      MSTensor output = outputs.get(0);
      Check.that(runner.predict(six(runner), outputs), runner.lastError());
      Check.equal(1, outputs.size());
      Check.that(output == outputs.get(0), "another tensor");
      Check.equal(SUMS, output.getFloatData());
      Check.that(runner.predict(six(runner), List.of(output)), "a list that cannot change");
      output.free();
      Check.throwsA(MSException.class, () -> runner.predict(six(runner), outputs));
    }
  }

  public static void eachRequestTakesWhatItsTensorHasByThen() {
    try (ModelParallelRunner runner = Models.runner("any.mindir")) {
      List<MSTensor> inputs = runner.getInputs();
      List<MSTensor> outputs = runner.getOutputs();
      for (int rows : new int[] {2, 10_000, 2}) { // in the frame, in shared memory
        inputs.get(0).throwing().setShape(new int[] {rows, 3});
        for (float value = 1; value < 4; ++value) {
          float[] data = Models.filled(rows * 3, value);
          inputs.get(0).setData(data);
          runner.predict(inputs, outputs);
          Check.equal(Models.dense(data), outputs.get(0).getFloatData());
        }
      }
    }
  }

  public static void aListThatThrowsLeavesNoCallUnderWay() {
    ModelParallelRunner runner = Models.runner("dense.mindir");
    List<MSTensor> inputs = runner.getInputs();
    inputs.get(0).setData(Models.SIX);
    List<MSTensor> broken = new ArrayList<>() {
      private static final long serialVersionUID = 1L;

      @Override
      public boolean addAll(Collection<? extends MSTensor> tensors) {
        throw new IllegalStateException("broken");
      }
    };
    MSException error = Check.throwsA(MSException.class, () -> runner.predict(inputs, broken));
    Check.contains(error.getMessage(), "broken");
    runner.free(); // which waits for calls under way
    Check.equal(0L, runner.getModelParallelRunnerPtr());
  }

  public static void resultsArePassedOnToAnotherRunner() {
    try (ModelParallelRunner runner = Models.runner("wide.mindir")) {
      List<MSTensor> inputs = runner.getInputs();
      inputs.get(0).setData(Models.filled(Models.WIDE, 3));
      List<MSTensor> first = new ArrayList<>();
      List<MSTensor> second = new ArrayList<>();
      runner.predict(inputs, first);
      runner.predict(first, second);
      first.forEach(MSTensor::free);
      Check.equal(3f, second.get(0).getFloatData()[Models.WIDE / 2]);
    }
  }

  public static void wrongArgumentsAreToldAndNothingElseHappens() {
    try (ModelParallelRunner runner = Models.runner("dense.mindir")) {
      List<MSTensor> inputs = six(runner);
      List<MSTensor> none = new ArrayList<>();
      List<MSTensor> two = new ArrayList<>(runner.getOutputs());
      two.addAll(runner.getOutputs());
      List<MSTensor> withNull = new ArrayList<>();
      withNull.add(null);
      Map<String, Runnable> wrong = Map.of("no inputs",
          ()
              -> runner.predict(new ArrayList<>(), none),
          "got no inputs",
          ()
              -> runner.predict(null, none),
          "input 0 is null",
          ()
              -> runner.predict(withNull, none),
          "null for the outputs",
          ()
              -> runner.predict(inputs, null),
          "output 0 is null",
          ()
              -> runner.predict(inputs, withNull),
          "got 2 output tensors, the model has 1",
          ()
              -> runner.predict(inputs, two),
          "cannot be added to",
          ()
              -> runner.predict(inputs, List.of()),
          "no data", () -> runner.predict(runner.getInputs(), none));
      wrong.forEach(
          (words,
              call) -> Check.contains(Check.throwsA(MSException.class, call).getMessage(), words));
      List<MSTensor> twice = new ArrayList<>(inputs);
      twice.addAll(inputs);
      Check.throwsA(MSException.class, () -> runner.predict(twice, none));
      Check.equal(0, none.size());
      Check.that(runner.predict(inputs, none), "the runner still works");
    }
  }

  public static void aShapeThatNoTensorHasIsToldThoughItHasNoElements() {
    try (ModelParallelRunner runner = Models.runner("any.mindir")) {
      List<MSTensor> inputs = runner.getInputs();
      int most = Integer.MAX_VALUE;
      inputs.get(0).throwing().setShape(new int[] {0, most, most});
      MSException error =
          Check.throwsA(MSException.class, () -> runner.predict(inputs, new ArrayList<>()));
      Check.equal("InputError", error.kind());
      Check.contains(error.getMessage(), "[0,2147483647,2147483647]");
    }
  }

  public static void beforeInitAndAfterFreeThereIsNothing() {
    ModelParallelRunner runner = new ModelParallelRunner();
    List<MSTensor> outputs = new ArrayList<>();
    MSTensor some = MSTensor.createTensor("x", new float[][] {{1, 2, 3}, {4, 5, 6}});
    for (int round = 0; round < 2; ++round) {
      Check.equal(List.of(), runner.getInputs());
      Check.equal(List.of(), runner.getOutputs());
      Check.equal(0L, runner.getModelParallelRunnerPtr());
      Check.that(!runner.predict(List.of(some), outputs), "it ran");
      Check.contains(runner.lastError(), "init");
      runner.free();
      Check.that(runner.init(Models.file("dense.mindir"), Models.config(1)), runner.lastError());
      Check.that(runner.init("/no/such", Models.config(1)), "initialised is initialised");
      Check.that(runner.getModelParallelRunnerPtr() != 0, "no pointer");
      Check.that(runner.predict(List.of(some), outputs), runner.lastError());
      runner.free();
      runner.free();
    }
  }

  public static void initSaysWhatIsWrong() {
    String dense = Models.file("dense.mindir");
    RunnerConfig freed = Models.config(1);
    freed.free();
    try (ModelParallelRunner runner = new ModelParallelRunner()) {
      Map<String, java.util.function.BooleanSupplier> wrong = Map.of("/no/such.mindir",
          ()
              -> runner.init("/no/such.mindir"),
          "garbage.mindir",
          ()
              -> runner.init(Models.file("garbage.mindir")),
          "null for the path",
          ()
              -> runner.init(null),
          "null for the configuration",
          ()
              -> runner.init(dense, null),
          "not initialised, or was freed",
          ()
              -> runner.init(dense, freed),
          "is not initialised", () -> runner.init(dense, new RunnerConfig()));
      wrong.forEach((words, call) -> {
        Check.that(!call.getAsBoolean(), words);
        Check.contains(runner.lastError(), words);
      });
      Check.that(runner.init(dense), runner.lastError());
    }
  }

  public static void theConfigurationMayBeFreedInAnyOrder() {
    for (int order = 0; order < 3; ++order) {
      MSContext context = Models.cpu();
      RunnerConfig config = new RunnerConfig();
      Check.that(config.init(context), config.lastError());
      config.setWorkersNum(1);
      if (order == 0) {
        context.free();
      }
      ModelParallelRunner runner = new ModelParallelRunner();
      Check.that(runner.init(Models.file("dense.mindir"), config), runner.lastError());
      if (order == 1) {
        context.free();
      }
      config.free();
      config.free();
      context.free();
      Check.equal(SUMS, Models.ask(runner, TWO_ROWS, Models.SIX));
      runner.free();
    }
  }

  public static void settingsOfTheRunnerArrive() {
    RunnerConfig config = Models.config(1);
    config.setConfigInfo("parallel", new HashMap<>(Map.of("queue_size", "nonsense")));
    try (ModelParallelRunner runner = new ModelParallelRunner()) {
      Check.that(!runner.init(Models.file("dense.mindir"), config), "it was taken");
      Check.contains(runner.lastError(), "nonsense");
    }
  }

  public static void runnersOfOneNameAreOneModelOfTheWorker() {
    RunnerConfig config = Models.config(1);
    config.setConfigInfo("service", new HashMap<>(Map.of("name", "dense")));
    try (ModelParallelRunner first = new ModelParallelRunner();
        ModelParallelRunner other = new ModelParallelRunner()) {
      Check.that(first.init(Models.file("dense.mindir"), config), first.lastError());
      try (ModelParallelRunner second = new ModelParallelRunner()) {
        Check.that(second.init(Models.file("dense.mindir"), config), second.lastError());
        Check.equal(SUMS, Models.ask(second, TWO_ROWS, Models.SIX));
      }
      Check.equal(SUMS, Models.ask(first, TWO_ROWS, Models.SIX));
      Check.that(!other.init(Models.file("wide.mindir"), config), "it was taken");
      Check.contains(other.lastError(), "the name 'dense', version 1, belongs to");
    }
  }

  public static void freeWaitsForCallsUnderWayAndRefusesLaterOnes() {
    ModelParallelRunner runner = Models.runner("wide.mindir");
    CountDownLatch areInside = new CountDownLatch(4);
    AtomicInteger answers = new AtomicInteger();
    Check.threads(5, i -> {
      if (i == 4) {
        areInside.await();
        runner.free();
        Check.equal(0L, runner.getModelParallelRunnerPtr());
        return;
      }
      float[] values = Models.filled(Models.WIDE, i);
      List<MSTensor> inputs = runner.getInputs();
      inputs.get(0).setData(values);
      MSException last = Check.throwsA(MSException.class, () -> {
        for (;;) {
          List<MSTensor> outputs = new ArrayList<>();
          runner.predict(inputs, outputs);
          areInside.countDown();
          answers.incrementAndGet();
          Check.equal(values[0], outputs.get(0).getFloatData()[9]);
          outputs.forEach(MSTensor::free);
        }
      });
      Check.equal("ClosedError", last.kind());
    });
    Check.that(answers.get() >= 4, "nobody was inside");
  }

  public static void aDeadWorkerIsToldAndTheNextInitStartsAnother() {
    ModelParallelRunner runner = Models.runner("dense.mindir");
    List<MSTensor> inputs = six(runner);
    List<MSTensor> outputs = new ArrayList<>();
    runner.predict(inputs, outputs);
    Models.killWorker();
    MSException error =
        Check.throwsA(MSException.class, () -> runner.predict(inputs, new ArrayList<>()));
    Check.equal("WorkerDiedError", error.kind());
    Check.equal(1, error.code());
    Check.equal(SUMS, outputs.get(0).getFloatData());
    runner.free();
    runner.init(Models.file("dense.mindir"), Models.config(1));
    Check.equal(SUMS, Models.ask(runner, TWO_ROWS, Models.SIX));
    runner.free();
  }

  public static void tensorsOutliveTheWorkerThatMadeThem() {
    ModelParallelRunner runner = Models.runner("wide.mindir");
    List<MSTensor> inputs = runner.getInputs();
    inputs.get(0).setData(Models.filled(Models.WIDE, 5));
    List<MSTensor> outputs = new ArrayList<>();
    runner.predict(inputs, outputs);
    Models.killWorker();
    Check.equal(5f, outputs.get(0).getFloatData()[77]);
    try (ModelParallelRunner next = Models.runner("wide.mindir")) {
      List<MSTensor> again = new ArrayList<>();
      next.predict(outputs, again); // memory of the dead one is input of the next
      Check.equal(5f, again.get(0).getFloatData()[78]);
      next.predict(inputs, again);
      Check.equal(5f, again.get(0).getFloatData()[79]);
    }
    runner.free();
  }

  public static void anInterruptedThreadGetsItsAnswerAndKeepsItsFlag() {
    try (ModelParallelRunner runner = Models.runner("wide.mindir")) {
      for (int round = 0; round < 3; ++round) {
        Thread.currentThread().interrupt();
        float[] answer = Models.ask(runner, ALL, Models.filled(Models.WIDE, round));
        Check.equal((float) round, answer[1]);
        Check.that(Thread.interrupted(), "the flag is gone");
      }
      Thread.currentThread().interrupt();
      runner.free();
      Check.that(Thread.interrupted(), "the flag is gone");
    }
  }

  public static void aRequestMayHaveAPriority() {
    try (ModelParallelRunner runner = new ModelParallelRunner().throwing()) {
      runner.init(Models.file("digits.mindir"), Models.config(1));
      List<MSTensor> inputs = runner.getInputs();
      inputs.get(0).setShape(new int[] {1, 1, 8, 8});
      inputs.get(0).setData(Models.filled(64, 1));
      for (int priority : new int[] {-100, 0, 100}) {
        List<MSTensor> outputs = new ArrayList<>();
        Check.that(runner.predict(inputs, outputs, priority), "it failed");
        Check.equal(1, outputs.size());
        outputs.forEach(MSTensor::free);
      }
      for (int priority : new int[] {-101, 101, 257}) {
        MSException wrong = Check.throwsA(
            MSException.class, () -> runner.predict(inputs, new ArrayList<>(), priority));
        Check.equal("ValueError", wrong.kind());
        Check.contains(wrong.getMessage(), "must be -100 to 100, but got " + priority);
      }
    }
  }

  public static void aDeadlineIsKept() {
    RunnerConfig config = Models.config(1);
    config.setConfigInfo("parallel", new HashMap<>(Map.of("timeout_s", "0.001")));
    try (ModelParallelRunner runner = new ModelParallelRunner().throwing()) {
      runner.init(Models.file("digits.mindir"), config);
      List<MSTensor> inputs = runner.getInputs();
      inputs.get(0).setShape(new int[] {20_000, 1, 8, 8}); // which takes many times as long
      inputs.get(0).setData(Models.filled(20_000 * 64, 1));
      MSException late =
          Check.throwsA(MSException.class, () -> runner.predict(inputs, new ArrayList<>()));
      Check.equal("RequestTimeoutError", late.kind());
    }
  }
}
