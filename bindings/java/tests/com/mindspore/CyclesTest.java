package com.mindspore;

import com.mindspore.check.Check;
import java.io.IOException;
import java.lang.management.BufferPoolMXBean;
import java.lang.management.ManagementFactory;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;

/** Runners and models that come and go leave nothing behind, here or in the worker. */
public final class CyclesTest {
  private CyclesTest() {}

  /** What a process has. */
  private record Held(long files, long mappings, long threads, long ownKib) {
    static Held of(String process) throws IOException {
      Path folder = Path.of("/proc", process);
      long mappings;
      try (Stream<String> lines = Files.lines(folder.resolve("maps"))) {
        mappings = lines.filter(line -> line.contains("/memfd:")).count();
      }
      return new Held(entries(folder.resolve("fd")), mappings, entries(folder.resolve("task")),
          ownKib(folder.resolve("status")));
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

  private static void checkSame(Held before, Held after) {
    Check.equal(before.files, after.files);
    Check.equal(before.mappings, after.mappings);
    Check.that(after.threads <= before.threads + 8, before + ", then " + after);
  }

  public static void aThousandRunnersLeaveNothingBehind() throws IOException {
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
      for (int i = 0; i < 1000; ++i) {
        cycle();
      }
      long grown = Held.of(worker).ownKib - there.ownKib;
      Check.that(grown < 4 * 1024, "the worker has grown by " + grown + " KiB");
      for (int i = 0; i < 20; ++i) {
        largeCycle();
      }
      checkSame(there, Held.of(worker));
      checkSame(here, Held.of("self"));
      Check.equal(direct, bufferBytes("direct"));
      Check.equal(mapped, bufferBytes("mapped"));
      Check.equal(children, ProcessHandle.current().children().count());
      long more = heapBytes() - heap;
      Check.that(more < 2 << 20, "the heap has grown by " + more + " bytes");
    } finally {
      one.free();
    }
  }

  public static void whatIsForgottenIsReleased() throws IOException {
    largeCycle(); // with the last model go the blocks that are kept for later
    String worker = Long.toString(Models.worker());
    long before = Held.of(worker).mappings;
    forget();
    Check.that(Held.of(worker).mappings > before, "there is nothing to be released");
    for (int i = 0; i < 1000 && Held.of(worker).mappings > before; ++i) {
      System.gc(); // after which a thread of its own tells the worker
    }
    Check.equal(before, Held.of(worker).mappings);
  }

  public static void aViewKeepsItsMemoryAndNobodyElseDoes() throws IOException {
    largeCycle();
    long before = Held.of("self").mappings;
    FloatBuffer view = viewOfAResult(); // of which only a part is left: no tensor, no runner
    for (int i = 0; i < 10; ++i) {
      System.gc();
      largeCycle(); // which would write there, or find it unmapped
    }
    Check.equal(before + 1, Held.of("self").mappings);
    Check.equal(7f, view.get(0));
    Check.equal(7f, view.get(view.limit() - 1));
    view = null;
    for (int i = 0; i < 1000 && Held.of("self").mappings > before; ++i) {
      System.gc();
    }
    Check.equal(before, Held.of("self").mappings);
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
