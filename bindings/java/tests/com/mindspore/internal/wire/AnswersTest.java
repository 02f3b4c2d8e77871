package com.mindspore.internal.wire;

import com.mindspore.MSException;
import com.mindspore.check.Check;
import com.mindspore.internal.BuildRequest;
import com.mindspore.internal.Filled;
import com.mindspore.internal.Memory;
import java.io.File;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicReference;

/** What a session makes of a worker that answers badly, late or not at all. */
public final class AnswersTest {
  private static final byte[] NOTHING = {};

  private AnswersTest() {}

  public static void anErrorIsTheCallersAndTheLaneGoesOn() throws Exception {
    try (FakeWorker worker = new FakeWorker(
             (header, body)
                 -> header.request() == 1 ? refused(header) : FakeWorker.told(header, "a fact"))) {
      MSException error = Check.throwsA(MSException.class, () -> worker.session().info(0, "x"));
      Check.equal(-3, error.code());
      Check.equal("ValueError", error.kind());
      Check.equal("no such thing\nlook elsewhere", error.getMessage());
      Check.equal("a fact", worker.session().info(0, "x"));
      Check.equal(1, worker.lanes());
    }
  }

  public static void anErrorThatSaysSuccessIsStillAnError() throws Exception {
    try (FakeWorker worker = new FakeWorker(
             (header, body) -> FakeWorker.frame(Message.ERROR, header.request(), out -> {
               out.u64(0);
               out.u64(0);
             }))) {
      Check.equal(-1, Check.throwsA(MSException.class, () -> worker.session().info(0, "x")).code());
    }
  }

  public static void whatFollowsInAnAnswerIsIgnored() throws Exception {
    try (FakeWorker worker = new FakeWorker((header, body) -> FakeWorker.reply(header, out -> {
      out.text("a fact");
      out.u64(7); // a field of a later release
    }))) {
      Check.equal("a fact", worker.session().info(0, "x"));
    }
  }

  public static void anAnswerThatMakesNoSenseClosesTheLaneAndIsTold() throws Exception {
    for (Vectors.Vector vector : Vectors.named("bad-answer")) {
      byte[] bad = vector.parts().get(0).encoded();
      try (FakeWorker worker = new FakeWorker(
               (header, body) -> header.request() == 3 ? bad : FakeWorker.told(header, "a fact"))) {
        worker.session().info(0, "x");
        worker.session().info(0, "x"); // that was requests 1 and 2
        MSException error = Check.throwsA(MSException.class,
            () -> worker.session().predict(1, List.of(Digits.of(1, 1)), CallOptions.within(0)));
        Check.equal("WireError", error.kind());
        Check.equal("a fact", worker.session().info(0, "x"));
        Check.equal(2, worker.lanes());
      }
    }
  }

  public static void moreThanTheAnswerIsNoAnswer() throws Exception {
    try (FakeWorker worker = new FakeWorker((header, body) -> {
      byte[] answer = FakeWorker.told(header, "a fact");
      return Arrays.copyOf(answer, answer.length + 1);
    })) {
      MSException error = Check.throwsA(MSException.class, () -> worker.session().info(0, "x"));
      Check.equal("WireError", error.kind());
    }
  }

  private static int files() {
    return new File("/proc/self/fd").list().length;
  }

  public static void lanesThatAreClosedLeaveNoDescriptors() throws Exception {
    try (FakeWorker worker = new FakeWorker((header, body) -> new byte[Frame.HEADER_BYTES])) {
      int before = 0;
      for (int i = 0; i < 30; ++i) {
        Check.throwsA(MSException.class, () -> worker.session().info(0, "x"));
        if (i == 0) {
          before = files();
        }
      }
      Check.equal(30, worker.lanes());
      // the other ends are in this process as well, and closed a little later
      int most = before;
      Check.eventually(() -> files() <= most, "no more than " + most + " descriptors are open");
    }
  }

  public static void aWorkerThatDiesIsNamedWithWhatToDo() throws Exception {
    AtomicReference<FakeWorker> dying = new AtomicReference<>();
    try (FakeWorker worker = new FakeWorker((header, body) -> {
      dying.get().die();
      return NOTHING;
    })) {
      dying.set(worker);
      MSException error = Check.throwsA(MSException.class, () -> worker.session().info(0, "x"));
      Check.equal("WorkerDiedError", error.kind());
      Check.equal(1, error.code());
      long pid = ProcessHandle.current().pid();
      Check.contains(error.getMessage(), "the worker process " + pid + " is gone");
      Check.contains(error.getMessage(), "build the model again");
      Check.equal("WorkerDiedError",
          Check.throwsA(MSException.class, () -> worker.session().resize(1, List.of())).kind());
      Check.equal(null, worker.session().allocate(100));
      worker.session().close(1); // nothing to do, and no error
    }
  }

  public static void aLaneThatIsClosedIsNotTheEndOfTheWorker() throws Exception {
    try (FakeWorker worker = new FakeWorker(
             (header,
                 body) -> header.request() == 1 ? NOTHING : FakeWorker.told(header, "a fact"))) {
      MSException error = Check.throwsA(MSException.class, () -> worker.session().info(0, "x"));
      Check.equal("WireError", error.kind());
      Check.contains(error.getMessage(), "though it still runs");
      Check.equal("a fact", worker.session().info(0, "x"));
    }
  }

  public static void aRequestThatTakesTooLongIsGivenUpAndItsLaneClosed() throws Exception {
    CountDownLatch end = new CountDownLatch(1);
    try (FakeWorker worker = new FakeWorker((header, body) -> {
      if (header.message() == Message.INFO) {
        return FakeWorker.told(header, "a fact");
      }
      Interrupts.putOff(() -> {
        end.await();
        return null;
      });
      return NOTHING;
    })) {
      Session session = worker.session();
      MSException error = Check.throwsA(MSException.class,
          () -> session.predict(1, List.of(Digits.of(1, 1)), CallOptions.within(20)));
      Check.equal("RequestTimeoutError", error.kind());
      Check.equal(268435470, error.code());
      Check.contains(error.getMessage(), "did not answer within 20 ms");
      // so does one that first needs memory of a worker that does not make any
      error = Check.throwsA(MSException.class,
          () -> session.predict(1, List.of(Digits.of(100, 1)), CallOptions.within(20)));
      Check.equal("RequestTimeoutError", error.kind());
      Check.equal("a fact", session.info(0, "x"));
    } finally {
      end.countDown();
    }
  }

  public static void anInterruptDisturbsNoRequestAndIsKept() throws Exception {
    Thread caller = Thread.currentThread();
    try (SharedFiles files = new SharedFiles();
        FakeWorker worker = new FakeWorker(files.pid(), (header, body) -> {
          caller.interrupt(); // while it waits for the answer
          return header.message() == Message.ALLOCATE
              ? FakeWorker.reply(header, out -> tell(files.made(1, 1 << 16), out))
              : FakeWorker.told(header, "a fact");
        })) {
      for (int i = 0; i < 3; ++i) {
        Check.equal("a fact", worker.session().info(0, "x"));
        Check.that(Thread.currentThread().isInterrupted(), "the interrupt was lost");
      }
      Memory memory = worker.session().allocate(100);
      Check.that(memory != null, "the interrupt was in the way of memory");
      Check.that(Thread.interrupted(), "the interrupt was lost");
      memory.release();
    }
  }

  public static void anInputWithoutDataIsRefusedBeforeItIsSent() throws Exception {
    try (FakeWorker worker = new FakeWorker((header, body) -> NOTHING)) {
      Filled input = Digits.of(1, 1);
      for (Memory memory : Arrays.asList(null, Memory.onHeap(Digits.BYTES / 2))) {
        List<Filled> inputs = List.of(new Filled(input.info(), memory));
        MSException error = Check.throwsA(
            MSException.class, () -> worker.session().predict(1, inputs, CallOptions.within(0)));
        Check.equal("InputError", error.kind());
      }
    }
  }

  public static void whatIsTooLargeForTheProtocolIsRefusedBeforeItIsSent() throws Exception {
    try (FakeWorker worker = new FakeWorker((header, body) -> FakeWorker.told(header, "a fact"))) {
      Session session = worker.session();
      String large = "x".repeat(Limits.TEXT + 1);
      Check.contains(Check.throwsA(MSException.class, () -> session.info(0, large)).getMessage(),
          "it has 1048577 bytes, at most 1048576 can");
      Check.throwsA(MSException.class, () -> session.resize(1, List.of(new long[65])));
      BuildRequest request = new BuildRequest();
      for (int i = 0; i < 17; ++i) {
        request.settings.add(new BuildRequest.Setting("x", "x".repeat(Limits.TEXT)));
      }
      Check.contains(Check.throwsA(MSException.class, () -> session.build(request)).getMessage(),
          "at most 16777216 can");
      Check.throwsA(MSException.class, () -> session.info(0, "\ud800"));
      Check.equal("a fact", session.info(0, "x"));
      Check.equal(1, worker.lanes());
    }
  }

  static void tell(Made made, Writer out) {
    out.u32(1);
    out.u32(made.block());
    out.u32(made.descriptor());
    out.u64(made.size());
  }

  private static byte[] refused(Frame.Header header) {
    return FakeWorker.frame(Message.ERROR, header.request(), out -> {
      out.u32(-3);
      List.of("ValueError", "no such thing", "look elsewhere").forEach(out::text);
    });
  }
}
