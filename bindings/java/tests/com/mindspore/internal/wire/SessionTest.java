package com.mindspore.internal.wire;

import com.mindspore.MSException;
import com.mindspore.check.Check;
import com.mindspore.internal.BuildRequest;
import com.mindspore.internal.Built;
import com.mindspore.internal.Description;
import com.mindspore.internal.Filled;
import com.mindspore.internal.Memory;
import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;

/** A session at a real worker. */
public final class SessionTest {
  private static final int ROWS = 420; // whose outputs do not fit into a frame

  private SessionTest() {}

  private static Session session() {
    Digits.build(); // or skips
    return Session.current();
  }

  public static void predictsInTheFrameAndInBlocks() {
    Session session = session();
    Built built = session.build(Digits.build());
    Check.equal(new long[] {-1, 1, 8, 8}, built.description().inputs().get(0).shape());
    for (int count : new int[] {1, ROWS, 1, ROWS}) {
      Memory memory = session.allocate(count * Digits.BYTES);
      List<Filled> outputs = session.predict(
          built.model(), List.of(Digits.in(memory, count, 0.5f)), CallOptions.within(0));
      memory.release();
      Digits.check(count, outputs);
      Check.equal(count == ROWS, outputs.get(0).memory().isKnownTo(session));
      Digits.release(outputs);
    }
    session.close(built.model());
    MSException error = Check.throwsA(MSException.class,
        () -> session.predict(built.model(), List.of(Digits.of(1, 1)), CallOptions.within(0)));
    Check.equal("ClosedError", error.kind());
  }

  public static void aModelIsBuiltFromItsBytesAndResized() throws IOException {
    Session session = session();
    BuildRequest request = Digits.build();
    request.isRunner = false;
    request.content = ByteBuffer.wrap(Files.readAllBytes(Path.of(request.path)));
    request.path = "";
    int model = session.build(request).model();
    Description description = session.resize(model, List.of(new long[] {3, 1, 8, 8}));
    Check.equal(new long[] {3, 10}, description.outputs().get(0).shape());
    List<Filled> outputs = session.predict(model, List.of(Digits.of(3, 1)), CallOptions.within(0));
    Digits.check(3, outputs);
    Digits.release(outputs);
    session.close(model);
  }

  public static void errorsOfTheWorkerComeWithKindAndCode() {
    Session session = session();
    BuildRequest request = Digits.build();
    request.path = "/no/such/model.mindir";
    MSException error = Check.throwsA(MSException.class, () -> session.build(request));
    Check.equal("ModelFileError", error.kind());
    Check.equal(-200, error.code());
    Check.contains(error.getMessage(), "/no/such/model.mindir");
  }

  public static void thirtyTwoThreadsPredictAtOnce() {
    Session session = session();
    int model = session.build(Digits.build()).model();
    Check.threads(32, i -> {
      for (int count : new int[] {1, 70, 2}) {
        List<Filled> outputs =
            session.predict(model, List.of(Digits.of(count, i / 32f)), CallOptions.within(0));
        Digits.check(count, outputs);
        Digits.release(outputs);
      }
    });
    session.close(model);
  }

  public static void anInterruptBeforeARequestIsKept() {
    Session session = session();
    int model = session.build(Digits.build()).model();
    for (int count : new int[] {1, ROWS}) {
      Thread.currentThread().interrupt();
      List<Filled> outputs =
          session.predict(model, List.of(Digits.of(count, 1)), CallOptions.within(0));
      Check.that(Thread.interrupted(), "the interrupt was lost");
      Digits.check(count, outputs);
      Digits.release(outputs);
    }
    Thread.currentThread().interrupt();
    session.close(model);
    Check.that(Thread.interrupted(), "the interrupt was lost");
  }

  public static void aWorkerThatHangsIsGivenUpAfterTheLimit() throws Exception {
    Session session = session();
    int model = session.build(Digits.build()).model();
    signal("STOP", session);
    awaitStopped(session.link.pid());
    try {
      for (int count : new int[] {1, 70}) { // the second one needs another lane, and memory
        MSException error = Check.throwsA(MSException.class,
            () -> session.predict(model, List.of(Digits.of(count, 1)), CallOptions.within(50)));
        Check.equal("RequestTimeoutError", error.kind());
      }
    } finally {
      signal("CONT", session);
    }
    List<Filled> outputs =
        session.predict(model, List.of(Digits.of(1, 1)), CallOptions.within(60_000));
    Digits.release(outputs);
    session.close(model);
  }

  public static void aWorkerThatIsKilledIsToldToAllAndTheNextOneStarts() throws Exception {
    Session session = session();
    int model = session.build(Digits.build()).model();
    Memory memory = session.allocate(1 << 20);
    AtomicInteger answered = new AtomicInteger();
    Check.threads(5, i -> {
      if (i == 0) {
        while (answered.get() < 8) {
          Thread.onSpinWait();
        }
        signal("KILL", session);
        return;
      }
      MSException error = Check.throwsA(MSException.class, () -> {
        for (;;) {
          Digits.release(session.predict(model, List.of(Digits.of(100, 1)), CallOptions.within(0)));
          answered.incrementAndGet();
        }
      });
      Check.equal("WorkerDiedError", error.kind());
      Check.contains(error.getMessage(), "is gone (killed by signal 9)");
    });
    Check.equal(null, Session.running());
    session.close(model);
    Check.equal(null, session.allocate(100));
    memory.buffer().put(0, (byte) 1); // it stays valid
    Thread.currentThread().interrupt(); // which is not in the way of a start
    Session next = Session.current();
    Check.that(Thread.interrupted(), "the interrupt was lost");
    Check.that(next != session && next.link.pid() != session.link.pid(), "it is the same");
    Check.that(!memory.isKnownTo(next), "the next worker does not know it");
    memory.release();
    awaitGone(session.link.path.getParent());
    next.info(0, "version");
  }

  private static long mappings() throws IOException {
    try (Stream<String> lines = Files.lines(Path.of("/proc/self/maps"))) {
      return lines.filter(line -> line.contains("/memfd:mslite")).count();
    }
  }

  public static void interruptsLeaveNoMemoryMapped() throws Exception {
    Session session = session();
    session.allocate(100).release();
    long before = mappings();
    Thread user = Thread.currentThread();
    AtomicBoolean isDone = new AtomicBoolean();
    Thread rain = new Thread(() -> {
      while (!isDone.get()) {
        user.interrupt();
      }
    });
    rain.start();
    for (int i = 0; i < 100; ++i) {
      session.allocate(1 << 17).release(); // no model is there: each is a new one
    }
    isDone.set(true);
    Interrupts.putOff(() -> {
      rain.join();
      return null;
    });
    Thread.interrupted();
    Check.that(mappings() <= before, before + " mappings have become " + mappings());
  }

  public static void aThousandPiecesOfMemoryLeaveNothingBehind() throws Exception {
    Session session = session();
    int model = session.build(Digits.build()).model();
    session.allocate(100).release();
    session.close(model); // idle ones go with it
    long files = count("/proc/self/fd");
    long filesThere = count("/proc/" + session.link.pid() + "/fd");
    int next = session.build(Digits.build()).model();
    for (int i = 0; i < 1000; ++i) {
      Memory memory = session.allocate((1 + i % 40) << 16);
      memory.buffer().put(0, (byte) 1);
      if (i % 50 == 0) {
        memory.view();
      }
      memory.release();
    }
    session.close(next);
    // less where a test before has left some, which are closed a little later
    Check.that(count("/proc/self/fd") <= files, "there are more descriptors");
    Check.that(count("/proc/" + session.link.pid() + "/fd") <= filesThere, "there are more there");
    long mapped = mappings();
    Check.that(mapped <= 30, mapped + " blocks are mapped, though 20 had views at most");
  }

  public static void anotherProgramAttachesToAWorkerThatListens() throws Exception {
    Session session = session();
    Path path = session.link.path;
    Process other = Probe.started(Map.of(), List.of("-Dmslite.socket=" + path), "return");
    Check.equal(session.link.pid() + " " + path, Probe.said(other));
    Check.equal(0, other.waitFor());
    session.info(0, "version");
  }

  /** Java cannot write such a name in a C locale, but the worker can be told. */
  public static void aPathThatIsNotAsciiArrivesWholeInEveryLocale() throws Exception {
    String path = session().link.path.toString();
    Path folder = Files.createTempDirectory("mslite-locale");
    run("sh", "-c", "cp \"$0\" \"$1/$(printf 'mod\\303\\250le.mindir')\"", Digits.build().path,
        folder.toString());
    for (String locale : List.of("C", "C.UTF-8")) {
      Map<String, String> variables = Map.of("MSLITE_SOCKET", path, "LC_ALL", locale);
      Process other = Probe.started(variables, List.of(), "build", folder.toString());
      Check.contains(Probe.said(other), path);
      Check.equal(0, other.waitFor());
    }
    run("rm", "-r", folder.toString());
  }

  static void signal(String name, Session session) throws Exception {
    run("kill", "-" + name, Long.toString(session.link.pid()));
  }

  /** A signal is sent before it has its effect, thread by thread. */
  static void awaitStopped(long pid) {
    File tasks = new File("/proc/" + pid + "/task");
    Check.eventually(
        () -> Stream.of(tasks.listFiles()).allMatch(SessionTest::isStopped), pid + " has stopped");
  }

  private static boolean isStopped(File thread) {
    try {
      return Files.readString(thread.toPath().resolve("stat")).contains(") T ");
    } catch (IOException gone) {
      return true;
    }
  }

  static void run(String... command) throws Exception {
    Check.equal(0, new ProcessBuilder(command).inheritIO().start().waitFor());
  }

  /** The directory of a worker that was killed is removed by a thread of ours. */
  static void awaitGone(Path path) {
    Check.eventually(() -> !Files.exists(path), path + " is gone");
  }

  static long count(String folder) throws IOException {
    try (var files = Files.list(Path.of(folder))) {
      return files.count();
    }
  }
}
