package com.mindspore.internal.wire;

import com.mindspore.MSException;
import com.mindspore.check.Check;
import com.mindspore.internal.BuildRequest;
import com.mindspore.internal.Filled;
import com.mindspore.internal.Memory;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicBoolean;

/** Memory that a worker made: what is mapped, what travels in it, and how long it lasts. */
public final class BlockTest {
  private BlockTest() {}

  public static void onlyMemoryOfTheRightSizeIsMapped() throws Exception {
    try (SharedFiles files = new SharedFiles()) {
      Made good = files.made(1, 4096);
      Block block = opened(files, good);
      block.part(4095, 1).put((byte) 1);
      block.unmap();
      List<Made> wrong = new ArrayList<>();
      wrong.add(new Made(0, good.descriptor(), 4096));
      for (long size : new long[] {0, 100, 8192, -1}) {
        wrong.add(new Made(1, good.descriptor(), size));
      }
      wrong.add(new Made(1, 0, 4096)); // no memory, but a pipe
      for (Made made : wrong) {
        Check.equal(
            "WireError", Check.throwsA(MSException.class, () -> opened(files, made)).kind());
      }
      for (Made made : List.of(new Made(1, 1 << 30, 4096), files.made(1, 1L << 31))) {
        Check.equal(
            "ResourceError", Check.throwsA(MSException.class, () -> opened(files, made)).kind());
      }
    }
  }

  private static Block opened(SharedFiles files, Made made) {
    return Block.opened(files.pid(), made, new AtomicBoolean(true));
  }

  /** A worker with a model whose outputs are its inputs; blocks are real. */
  private static final class Echo implements FakeWorker.Answer, AutoCloseable {
    final SharedFiles files = new SharedFiles();
    final Map<Integer, Made> blocks = new TreeMap<>();
    final List<String> places = new ArrayList<>(); // of the inputs
    int room; // the block of the last one
    private int last;

    Echo() throws Exception {}

    @Override
    public synchronized byte[] to(Frame.Header header, Reader body) {
      switch (header.message()) {
        case ALLOCATE:
          return FakeWorker.reply(header, out -> AnswersTest.tell(made(body.u64("a size")), out));
        case PREDICT:
          return predicted(header, body);
        case BUILD:
          return FakeWorker.frame(
              Message.BUILD_FINISH, header.request(), out -> List.of(1, 0, 0, 0).forEach(out::u32));
        case FREE:
          for (int i = body.count("blocks", 4); i > 0; --i) {
            blocks.remove(body.u32("a block"));
          }
          return FakeWorker.reply(header, out -> {});
        default:
          return FakeWorker.reply(header, out -> {});
      }
    }

    synchronized int count() {
      return blocks.size();
    }

    private Made made(long size) {
      Made made = files.made(++last, size);
      blocks.put(last, made);
      return made;
    }

    private byte[] predicted(Frame.Header header, Reader body) {
      body.take(13, "model, timeout and priority");
      room = body.u32("room");
      body.take(16, "room");
      List<WireTensor> tensors = WireTensor.readAll(body, "inputs");
      places.clear();
      tensors.forEach(tensor -> places.add(tensor.data() != null ? "frame" : "block"));
      return FakeWorker.reply(header, out -> answer(tensors, out));
    }

    private void answer(List<WireTensor> tensors, Writer out) {
      long needed = tensors.stream()
                        .mapToLong(tensor -> Limits.aligned(WireTensor.bytesOf(tensor.info())))
                        .sum();
      int block = room;
      if (needed > Limits.INLINE && room == 0) {
        AnswersTest.tell(made(needed), out);
        block = last;
      } else {
        out.u32(0);
      }
      long at = 0;
      out.u32(tensors.size());
      for (WireTensor tensor : tensors) {
        WireTensor told = tensor;
        if (tensor.place() != null) {
          told = new WireTensor(tensor.info(), null, new Place(block, at, tensor.place().size()));
          at = Limits.aligned(at + tensor.place().size());
        }
        told.write(out);
      }
    }

    @Override
    public void close() {
      files.close();
    }
  }

  public static void tensorsTravelWhereTheyAreCheapest() throws Exception {
    try (Echo echo = new Echo(); FakeWorker worker = new FakeWorker(echo.files.pid(), echo)) {
      Memory shared = worker.session().allocate(100 * Digits.BYTES);
      List<Filled> inputs =
          List.of(Digits.of(1, 1), Digits.of(64, 1), Digits.of(65, 1), Digits.in(shared, 100, 1));
      List<Filled> outputs = worker.session().predict(1, inputs, CallOptions.within(0));
      Check.equal(List.of("frame", "frame", "block", "block"), echo.places);
      Check.equal(4, outputs.size());
      Digits.release(outputs);
    }
  }

  public static void aBlockOfAnotherSessionIsCopied() throws Exception {
    try (Echo echo = new Echo(); Echo other = new Echo();
        FakeWorker worker = new FakeWorker(echo.files.pid(), echo);
        FakeWorker elsewhere = new FakeWorker(other.files.pid(), other)) {
      Memory foreign = elsewhere.session().allocate(100 * Digits.BYTES);
      int model = worker.session().build(new BuildRequest()).model();
      worker.session().predict(model, List.of(Digits.in(foreign, 100, 1)), CallOptions.within(0));
      Check.equal(2, echo.count()); // one was made for the copy, one for the output
    }
  }

  public static void memoryThatAResultNeedsIsNoRoomForTheNextOne() throws Exception {
    try (Echo echo = new Echo(); FakeWorker worker = new FakeWorker(echo.files.pid(), echo)) {
      int model = worker.session().build(new BuildRequest()).model();
      List<Filled> inputs = List.of(Digits.of(100, 1));
      List<Filled> first = worker.session().predict(model, inputs, CallOptions.within(0));
      Check.equal(0, echo.room);
      int blockOfFirst = ((SharedMemory) first.get(0).memory()).block();
      worker.session().predict(model, inputs, CallOptions.within(0));
      Check.that(echo.room != 0 && echo.room != blockOfFirst, "the room was " + echo.room);
    }
  }

  public static void idleMemoryGoesWithTheLastModelAndResultsStay() throws Exception {
    try (Echo echo = new Echo(); FakeWorker worker = new FakeWorker(echo.files.pid(), echo)) {
      int model = worker.session().build(new BuildRequest()).model();
      List<Filled> results =
          worker.session().predict(model, List.of(Digits.of(100, 1)), CallOptions.within(0));
      Check.equal(2, echo.count());
      worker.session().close(model);
      Check.equal(1, echo.count());
      results.get(0).memory().buffer().putFloat(0, 1);
      Digits.release(results);
      worker.session().close(model);
    }
  }

  public static void aViewStaysValidWhateverBecomesOfTheMemory() throws Exception {
    ByteBuffer view;
    try (Echo echo = new Echo(); FakeWorker worker = new FakeWorker(echo.files.pid(), echo)) {
      Memory memory = worker.session().allocate(1 << 20);
      view = memory.view();
      memory.release();
      Check.equal(0, echo.count()); // the worker has let go of it
      Memory next = worker.session().allocate(1 << 20);
      next.buffer().put(0, (byte) 1);
      Check.equal((byte) 0, view.get(0));
      next.release();
    }
    view.put((1 << 20) - 1, (byte) 2);
    Check.equal((byte) 2, view.get((1 << 20) - 1));
  }
}
