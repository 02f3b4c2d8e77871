package com.mindspore.internal.wire;

import com.mindspore.MSException;
import com.mindspore.check.Check;
import com.mindspore.internal.Filled;
import com.mindspore.internal.TensorInfo;
import com.mindspore.internal.wire.Vectors.Part;
import com.mindspore.internal.wire.Vectors.Vector;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;

/**
 * A worker that lies: its messages, damaged in some thousand ways that are the same in every run.
 * Whatever is made of them, it is a value or an MSException.
 */
public final class FuzzTest {
  private static final int TURNS = 60; // for each message and reader

  private FuzzTest() {}

  public static void noDamagedMessageBreaksAReader() {
    Random random = new Random(8);
    for (Vector vector : Vectors.all()) {
      for (Part part : vector.parts()) {
        if (!part.side.equals("worker") || !part.isFrame() || part.body().length > 4096) {
          continue; // truncations of the large ones are as good
        }
        byte[] body = part.body();
        for (int size = 0; size < body.length; ++size) {
          readInAllWays(Arrays.copyOf(body, size));
        }
        for (int turn = 0; turn < TURNS; ++turn) {
          readInAllWays(damaged(body, random));
        }
      }
    }
  }

  public static void noDamagedGreetingBreaksAReader() throws Exception {
    Random random = new Random(8);
    for (String name : List.of("01-greeting", "02-greeting-lane", "refused-full")) {
      List<Part> parts = Vectors.named(name).get(0).parts();
      byte[] whole = parts.get(parts.size() - 1).encoded();
      for (int turn = 0; turn < TURNS; ++turn) {
        try (Ends ends = new Ends(damaged(whole, random), true)) {
          ends.greet();
        } catch (MSException | IllegalStateException refused) {
          // what it should do
        }
      }
    }
  }

  public static void aFrameThatEndsAnywhereOrIsDamagedIsToldFromAWholeOne() throws Exception {
    Random random = new Random(8);
    byte[] whole = FakeWorker.frame(Message.REPLY, 7, out -> out.text("fact"));
    for (int turn = 0; turn < whole.length + 3 * TURNS; ++turn) {
      byte[] bytes = turn < whole.length ? Arrays.copyOf(whole, turn) : damaged(whole, random);
      try (Ends ends = new Ends(bytes, true)) {
        Check.that(turn >= whole.length || !ends.lost().isEmpty(), "it was taken for whole");
      } catch (MSException refused) {
        Check.that(turn >= whole.length, "it was cut, not damaged");
      }
    }
  }

  /** Outputs in memory that the worker made: every number of the answer may be wrong. */
  public static void whateverAWorkerSaysOfItsMemoryOnlyWhatIsThereIsRead() throws Exception {
    Random random = new Random(8);
    AtomicInteger turn = new AtomicInteger();
    try (SharedFiles files = new SharedFiles()) {
      Made made = files.made(5, 1 << 17);
      FakeWorker.Answer answer = (header, body) -> {
        if (header.message() != Message.PREDICT) {
          return FakeWorker.reply(header, out -> {});
        }
        byte[] good = outputs(made);
        ByteBuffer told = ByteBuffer.wrap(turn.get() > 0 ? damaged(good, random) : good);
        return FakeWorker.reply(header, out -> out.bytes(told));
      };
      try (FakeWorker worker = new FakeWorker(files.pid(), answer)) {
        int passed = 0;
        for (; turn.get() < 1000; turn.incrementAndGet()) {
          try {
            List<Filled> found =
                worker.session().predict(1, List.of(Digits.of(1, 1)), CallOptions.within(0));
            found.forEach(FuzzTest::checkZeros);
            Digits.release(found);
            ++passed;
          } catch (MSException refused) {
            Check.that(turn.get() > 0, "the good one is refused: " + refused.getMessage());
          }
        }
        Check.that(passed > 0 && passed < 1000, passed + " passed");
      }
    }
  }

  public static void anAnswerOfTheLargestSizeIsTaken() throws Exception {
    FakeWorker.Answer answer = (header, body) -> FakeWorker.reply(header, out -> {
      out.text("fact");
      out.bytes(ByteBuffer.allocate(Limits.BODY - 8));
    });
    try (FakeWorker worker = new FakeWorker(answer)) {
      Check.equal("fact", worker.session().info(1, "key"));
      Check.equal("fact", worker.session().info(1, "key"));
      Check.equal(1, worker.lanes());
    }
  }

  private static byte[] outputs(Made made) {
    Writer out = new Writer(0);
    AnswersTest.tell(made, out);
    TensorInfo info = new TensorInfo("y", Digits.FLOAT32, new long[] {1 << 14});
    Place place = new Place(made.block(), 64, 1 << 16);
    WireTensor.writeAll(out, List.of(new WireTensor(info, null, place)), "outputs");
    byte[] bytes = new byte[out.written().remaining()];
    out.written().get(bytes);
    return bytes;
  }

  /** The memory is full of zeros, and so is all that is read. */
  private static void checkZeros(Filled output) {
    ByteBuffer bytes = output.memory().buffer();
    for (int i = 0; i < bytes.limit(); i += 512) {
      Check.equal((byte) 0, bytes.get(i));
    }
    Check.equal((byte) 0, bytes.limit() == 0 ? (byte) 0 : bytes.get(bytes.limit() - 1));
  }

  private static void readInAllWays(byte[] body) {
    mustNotBreak(body, Bodies::built);
    mustNotBreak(body, Bodies::description);
    mustNotBreak(body, Frame::error);
    mustNotBreak(body, in -> in.text("a fact"));
    mustNotBreak(body, in -> {
      Bodies.made(in);
      WireTensor.readAll(in, "outputs");
    });
  }

  private static void mustNotBreak(byte[] body, Consumer<Reader> read) {
    try {
      read.accept(new Reader(ByteBuffer.wrap(body)));
    } catch (MSException refused) {
      // what it should do
    }
  }

  /** One to three changes: a byte, a number that is often wrong, some bytes less or more. */
  private static byte[] damaged(byte[] whole, Random random) {
    byte[] bytes = whole;
    for (int change = 1 + random.nextInt(3); change > 0 && bytes.length > 0; --change) {
      int at = random.nextInt(bytes.length);
      int width = Math.min(bytes.length - at, 1 << random.nextInt(4));
      int rest = bytes.length - at;
      ByteBuffer out = ByteBuffer.allocate(bytes.length + width).put(bytes, 0, at);
      switch (random.nextInt(4)) {
        case 0 -> out.put((byte) random.nextInt()).put(bytes, at + 1, rest - 1);
        case 1 -> out.put(bytes, at + width, rest - width);
        case 2 -> out.put(number(random), 0, width).put(bytes, at, rest);
        default -> out.put(number(random), 0, width).put(bytes, at + width, rest - width);
      }
      bytes = Arrays.copyOf(out.array(), out.position());
    }
    return bytes;
  }

  private static byte[] number(Random random) {
    long[] numbers = {
        0, 1, 64, 65, 4097, 0x7fffffff, -1, 1L << 62, Long.MIN_VALUE, random.nextLong()};
    long value = Long.reverseBytes(numbers[random.nextInt(numbers.length)]); // little-endian
    return ByteBuffer.allocate(8).putLong(value).array();
  }
}
