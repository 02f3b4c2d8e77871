package com.mindspore.internal.wire;

import com.mindspore.MSException;
import com.mindspore.check.Check;
import com.mindspore.internal.BuildRequest;
import com.mindspore.internal.Filled;
import com.mindspore.internal.Memory;
import com.mindspore.internal.TensorInfo;
import java.util.List;

/** A worker that stops answering, and one that computes for long. */
public final class PulseTest {
  private static final int INT64 = 35;
  private static final int ONNX = 3;

  private PulseTest() {}

  /** Has workers looked after often meanwhile, and given up after so many milliseconds. */
  private static void attentively(long silentMs, Check.Body work) throws Exception {
    Pulse.everyMs = 20;
    Pulse.askMs = 50;
    Pulse.silentMs = silentMs;
    try {
      work.run(0);
    } finally {
      Pulse.everyMs = 10_000;
      Pulse.askMs = 10_000;
      Pulse.silentMs = 60_000;
    }
  }

  public static void aStoppedWorkerIsGivenUpWithoutADeadline() throws Exception {
    BuildRequest request = Digits.build(); // or skips
    Session session = Session.current();
    int model = session.build(request).model();
    SessionTest.signal("STOP", session);
    SessionTest.awaitStopped(session.link.pid());
    attentively(300, index -> Check.threads(3, i -> {
      MSException error = Check.throwsA(MSException.class,
          () -> session.predict(model, List.of(Digits.of(1, 1)), CallOptions.within(0)));
      Check.equal("WorkerDiedError", error.kind());
      Check.contains(error.getMessage(), "did not answer for");
    }));
    Session next = Session.current();
    Check.that(next.link.pid() != session.link.pid(), "it is the same");
    int again = next.build(request).model();
    Digits.release(next.predict(again, List.of(Digits.of(1, 1)), CallOptions.within(0)));
    next.close(again);
  }

  public static void aWorkerThatComputesForLongIsNotTakenForDead() throws Exception {
    BuildRequest request = Digits.build(); // or skips
    request.isRunner = false;
    request.modelType = ONNX;
    request.path = System.getenv("MSLITE_MODELS") + "/loop.onnx";
    Session session = Session.current();
    int model = session.build(request).model();
    Memory turns = Memory.onHeap(8);
    turns.buffer().putLong(0, Long.MAX_VALUE / 2);
    List<Filled> endless = List.of(new Filled(new TensorInfo("n", INT64, new long[0]), turns),
        new Filled(new TensorInfo("x", Digits.FLOAT32, new long[] {2}), Memory.onHeap(8)));
    attentively(1000, index -> {
      MSException late = Check.throwsA(
          MSException.class, () -> session.predict(model, endless, CallOptions.within(4000)));
      Check.equal("RequestTimeoutError", late.kind());
    });
    session.close(model);
  }

  public static void theKernelTellsWhetherAProcessComputes() {
    long own = ProcessHandle.current().pid();
    long before = Pulse.cpuTicks(own);
    Check.that(before >= 0, "it computes");
    while (Pulse.cpuTicks(own) == before) {
      Thread.onSpinWait();
    }
    Check.equal(-1L, Pulse.cpuTicks(Integer.MAX_VALUE));
  }
}
