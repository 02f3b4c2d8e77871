package com.mindspore.internal;

import com.mindspore.MSException;
import com.mindspore.check.Check;
import com.mindspore.config.DataType;
import java.nio.ByteBuffer;

/** Tests of Tensor: who holds which memory, and for how long. */
public final class TensorTest {
  private static final TensorInfo FOUR =
      new TensorInfo("x", DataType.kNumberTypeInt8, new long[] {4});

  private TensorTest() {}

  private static Tensor with(FakeMemory memory) {
    Tensor tensor = new Tensor(FOUR, null);
    tensor.take(new Filled(FOUR, memory));
    return tensor;
  }

  private static ByteBuffer direct(int... bytes) {
    ByteBuffer buffer = ByteBuffer.allocateDirect(bytes.length);
    for (int i = 0; i < bytes.length; ++i) {
      buffer.put(i, (byte) bytes[i]);
    }
    return buffer;
  }

  public static void aResultIsHeldUntilItIsFreed() {
    FakeMemory memory = new FakeMemory(new byte[] {1, 2, 3, 4});
    Tensor tensor = with(memory);
    Check.equal(new byte[] {1, 2, 3, 4}, tensor.bytes());
    tensor.free();
    Check.that(memory.isDropped(), "free lets go");
    tensor.free();
    Check.equal(new byte[0], tensor.bytes());
    Check.equal(null, tensor.info());
  }

  public static void anotherResultOrShapeLetsGoOfTheFirst() {
    FakeMemory first = new FakeMemory(new byte[4]);
    FakeMemory second = new FakeMemory(new byte[4]);
    Tensor tensor = with(first);
    tensor.take(new Filled(FOUR, second));
    Check.that(first.isDropped() && !second.isDropped(), "the second one counts");
    tensor.describe(new TensorInfo("y", 43, new long[] {-1}));
    Check.that(second.isDropped() && !tensor.hasData(), "no data any more");
    Check.equal("y", tensor.info().name());
  }

  public static void aResultForATensorThatWasFreedMeanwhileIsLetGoOf() {
    FakeMemory memory = new FakeMemory(new byte[4]);
    Tensor tensor = new Tensor(FOUR, null);
    tensor.free();
    tensor.take(new Filled(FOUR, memory));
    Check.that(memory.isDropped(), "nobody needs it");
    Check.equal(null, tensor.info());
    tensor.describe(FOUR);
    Check.equal(null, tensor.info());
  }

  public static void aForgottenTensorGivesItsMemoryBack() {
    FakeMemory memory = new FakeMemory(new byte[4]);
    with(memory);
    Check.eventually(() -> {
      System.gc(); // a wish: the collector may need several
      return memory.isDropped();
    }, "the cleaner lets go");
  }

  public static void aRequestKeepsTheMemoryOfATensorThatIsFreed() {
    FakeMemory memory = new FakeMemory(new byte[] {1, 2, 3, 4});
    Tensor tensor = with(memory);
    Filled sent = tensor.content("input 0", null);
    tensor.free();
    Check.that(!memory.isDropped(), "the request has it");
    Check.equal(1, (int) sent.memory().buffer().get());
    sent.memory().release();
    Check.that(memory.isDropped(), "now nobody has");
  }

  public static void newDataDoesNotDisturbARequestUnderWay() {
    FakeMemory memory = new FakeMemory(new byte[] {1, 2, 3, 4});
    Tensor tensor = with(memory);
    Filled sent = tensor.content("input 0", null);
    tensor.copy("setData", direct(5, 6, 7, 8));
    Check.equal(1, (int) sent.memory().buffer().get());
    Check.equal(new byte[] {5, 6, 7, 8}, tensor.bytes());
    Filled next = tensor.content("input 0", null);
    Check.that(next.memory() != sent.memory(), "other memory");
    tensor.setBytes(new byte[] {9, 9, 9, 9});
    Check.that(tensor.content("input 0", null).memory() != next.memory(), "once more");
    Check.equal(5, (int) next.memory().buffer().get());
  }

  public static void withoutARequestUnderWayMemoryIsUsedAgain() {
    Tensor tensor = new Tensor(FOUR, null);
    tensor.copy("setData", direct(1, 2, 3, 4));
    Filled first = tensor.content("input 0", null);
    first.memory().release();
    tensor.setBytes(new byte[] {5, 6, 7, 8});
    Filled second = tensor.content("input 0", null);
    Check.that(first.memory() == second.memory(), "the same");
    Check.equal(5, (int) second.memory().buffer().get());
  }

  public static void aTensorWithoutElementsNeedsNoData() {
    Tensor tensor = new Tensor(new TensorInfo("x", 43, new long[] {0, 3}), null);
    Check.that(tensor.hasData(), "there is nothing to set");
    Check.equal(0, tensor.content("input 0", null).memory().size());
    Check.equal(0, tensor.view().capacity());
  }

  public static void typesThatMeanAnotherAreSentAsThatOne() {
    Tensor tensor =
        new Tensor(new TensorInfo("x", DataType.kNumberTypeFloat, new long[] {1}), null);
    tensor.setNumbers(new float[] {1}, DataType.kNumberTypeFloat32);
    Check.equal(DataType.kNumberTypeFloat32, tensor.content("input 0", null).info().type());
    Check.equal(new float[] {1}, tensor.floats());
  }

  public static void aRequestSaysWhatItsInputLacks() {
    Tensor tensor = new Tensor(new TensorInfo("x", 43, new long[] {-1, 2}), null);
    Check.contains(refusal(tensor),
        "input 3: not all dims of tensor 'x' of data type 43 and shape "
            + "[-1,2] are known");
    tensor.reshape(new long[] {3, 2});
    Check.contains(
        refusal(tensor), "input 3 has no data: tensor 'x' of data type 43 and shape [3,2]");
    tensor.describe(new TensorInfo("x", 43, new long[] {1 << 30, 1}));
    Check.contains(refusal(tensor), "more than 2147483647 bytes");
    tensor.free();
    Check.contains(refusal(tensor), "input 3: the tensor was freed");
  }

  private static String refusal(Tensor tensor) {
    MSException error = Check.throwsA(MSException.class, () -> tensor.content("input 3", null));
    Check.equal("InputError", error.kind());
    return error.getMessage();
  }

  public static void freeInAnotherThreadNeverTakesBytesThatAreRead() {
    for (int round = 0; round < 200; ++round) {
      FakeMemory memory = new FakeMemory(new byte[] {1, 2, 3, 4}); // it notices
      Tensor tensor = with(memory);
      Check.threads(4, i -> {
        if (i == 0) {
          tensor.free();
        } else if (i == 1) {
          int length = tensor.bytes().length;
          Check.that(length == 0 || length == 4, "all or nothing");
        } else {
          try {
            Filled sent = tensor.content("input 0", null);
            Check.equal(4, (int) sent.memory().buffer().get(3));
            sent.memory().release();
          } catch (MSException error) {
            Check.contains(error.getMessage(), "freed");
          }
        }
      });
      Check.that(memory.isDropped(), "freed");
    }
  }
}
