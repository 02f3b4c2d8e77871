package com.mindspore;

import com.mindspore.check.Check;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.management.BufferPoolMXBean;
import java.lang.management.ManagementFactory;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.function.LongSupplier;
import java.util.stream.Stream;

/** Runners and models that come and go leave nothing behind, here or in the worker. */
public final class CyclesTest {
  private static final int RUNNERS = 1000;
  private static final int LARGE_RUNNERS = 20;
  private static final int FEW = 8; // files and threads that come and go by themselves

  private CyclesTest() {}

  /** What a process has. */
  private record Held(long files, long mappings, long threads, long ownKib) {
    static Held of(String process) {
      Path folder = Path.of("/proc", process);
      try (Stream<String> lines = Files.lines(folder.resolve("maps"))) {
        long mappings = lines.filter(line -> line.contains("/memfd:")).count();
        return new Held(entries(folder.resolve("fd")), mappings, entries(folder.resolve("task")),
            ownKib(folder.resolve("status")));
      } catch (IOException error) {
        throw new UncheckedIOException(error);
      }
    }

    /** Without what is shared, which is kept for later. */
    private static long ownKib(Path status) throws IOException {
      try (Stream<String> lines = Files.lines(status)) {
        String line = lines.filter(one -> one.startsWith("RssAnon:")).findFirst().orElseThrow();
        return Long.parseLong(line.replaceAll("[^0-9]", ""));
      }
    }

    private static long entries(Path folder) throws IOException {
      try (Stream<Path> listed = Files.list(folder)) {
        return listed.count();
      }
    }
  }

  private static void cycle() {
    try (ModelParallelRunner runner = Models.runner("dense.mindir")) {
      Check.equal(Models.dense(Models.SIX), Models.ask(runner, new int[] {2, 3}, Models.SIX));
    }
  }

  /** Memory that is shared comes and goes, too. */
  private static void largeCycle() {
    try (ModelParallelRunner runner = Models.runner("wide.mindir")) {
      Models.ask(runner, new int[] {Models.WIDE}, Models.filled(Models.WIDE, 1));
    }
  }

  private static long heapBytes() {
    System.gc();
    return ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed();
  }

  private static long bufferBytes(String pool) {
    for (BufferPoolMXBean bean : ManagementFactory.getPlatformMXBeans(BufferPoolMXBean.class)) {
      if (bean.getName().equals(pool)) {
        return bean.getMemoryUsed();
      }
    }
    throw new AssertionError("no pool " + pool);
  }

  /**
   * Waits until a process has what it had. Something may be closed a little later than the call
   * that asks for it returns, before the first count or before the second: it may be less, too. A
   * file, mapping or thread that a runner leaves behind is there for each of them.
   */
  private static void checkNoMore(Held before, String process) {
    Check.eventually(() -> {
      Held now = Held.of(process);
      return now.files <= before.files + FEW && now.mappings <= before.mappings
          && now.threads <= before.threads + FEW;
    }, () -> process + " had " + before + ", then " + Held.of(process));
  }

  /** Waits until a figure is at most what it may be. */
  private static void checkAtMost(long most, LongSupplier figure, String what) {
    Check.eventually(()
                         -> figure.getAsLong() <= most,
        () -> "wanted at most " + most + " " + what + ", got " + figure.getAsLong());
  }

  public static void aThousandRunnersLeaveNothingBehind() {
    Model one = Models.built("dense.mindir"); // keeps the worker's session in use
    try {
      String worker = Long.toString(Models.worker());
      for (int i = 0; i < 50; ++i) {
        cycle();
      }
      for (int i = 0; i < 5; ++i) {
        largeCycle();
      }
      long heap = heapBytes();
      long children = ProcessHandle.current().children().count();
      Held here = Held.of("self"); // reading files takes a direct buffer, too
      Held there = Held.of(worker);
      long direct = bufferBytes("direct");
      long mapped = bufferBytes("mapped");
      for (int i = 0; i < RUNNERS; ++i) {
        cycle();
      }
      checkAtMost(there.ownKib + 4 * 1024, () -> Held.of(worker).ownKib, "KiB of the worker");
      for (int i = 0; i < LARGE_RUNNERS; ++i) {
        largeCycle();
      }
      checkNoMore(there, worker);
      checkNoMore(here, "self");
      // a thread that reads or writes has a direct buffer; 32 bytes a runner would be a leak
      checkAtMost(direct + 32 * RUNNERS, () -> bufferBytes("direct"), "bytes of direct buffers");
      checkAtMost(mapped, () -> bufferBytes("mapped"), "bytes that are mapped");
      checkAtMost(children, () -> ProcessHandle.current().children().count(), "children");
      checkAtMost(heap + (2 << 20), CyclesTest::heapBytes, "bytes of the heap");
    } finally {
      one.free();
    }
  }

  public static void whatIsForgottenIsReleased() {
    largeCycle(); // with the last model go the blocks that are kept for later
    String worker = Long.toString(Models.worker());
    long before = Held.of(worker).mappings;
    forget();
    Check.that(Held.of(worker).mappings > before, "there is nothing to be released");
    // after a collection, a thread of its own tells the worker
    checkAtMost(before, () -> afterCollection(worker), "mappings of the worker");
  }

  private static long afterCollection(String process) {
    System.gc();
    return Held.of(process).mappings;
  }

  public static void aViewKeepsItsMemoryAndNobodyElseDoes() {
    largeCycle();
    long before = Held.of("self").mappings;
    FloatBuffer view = viewOfAResult(); // of which only a part is left: no tensor, no runner
    for (int i = 0; i < 10; ++i) {
      System.gc();
      largeCycle(); // which would write there, or find it unmapped
    }
    checkAtMost(before + 1, () -> Held.of("self").mappings, "mappings");
    Check.equal(7f, view.get(0));
    Check.equal(7f, view.get(view.limit() - 1));
    view = null;
    checkAtMost(before, () -> afterCollection("self"), "mappings");
  }

  private static FloatBuffer viewOfAResult() {
    try (ModelParallelRunner runner = Models.runner("wide.mindir")) {
      List<MSTensor> outputs = new ArrayList<>();
      MSTensor input = MSTensor.of("x", Models.filled(Models.WIDE, 7));
      runner.predict(List.of(input), outputs);
      input.free();
      FloatBuffer view = outputs.get(0)
                             .getByteBuffer()
                             .asReadOnlyBuffer()
                             .order(ByteOrder.LITTLE_ENDIAN)
                             .asFloatBuffer();
      outputs.get(0).free();
      return view;
    }
  }

  private static void forget() {
    List<MSTensor> outputs = new ArrayList<>();
    for (int i = 0; i < 4; ++i) {
      ModelParallelRunner runner = Models.runner("wide.mindir");
      List<MSTensor> inputs = runner.getInputs();
      inputs.get(0).setData(Models.filled(Models.WIDE, i));
      runner.predict(inputs, outputs = new ArrayList<>());
      Model model = Models.built("wide.mindir");
      model.getInputs().get(0).setData(Models.filled(Models.WIDE, i));
      model.predict();
    }
    Check.equal(1, outputs.size());
  }
}
