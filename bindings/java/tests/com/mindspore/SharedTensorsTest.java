package com.mindspore;

import com.mindspore.check.Check;
import com.mindspore.config.DataType;
import com.mindspore.internal.Filled;
import com.mindspore.internal.Memory;
import com.mindspore.internal.TensorInfo;
import com.mindspore.internal.wire.Session;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;

/** Tests of tensors whose data is too large for a frame: it lies in memory of a real worker. */
public final class SharedTensorsTest {
  private static final int COUNT = 1 << 14;
  private static final TensorInfo LARGE =
      new TensorInfo("x", DataType.kNumberTypeFloat32, new long[] {COUNT});

  private SharedTensorsTest() {}

  /** A request that is over at once: what it would send first, and where that lies. */
  private static Memory sent(MSTensor tensor, float wanted) {
    Filled filled = tensor.content("input 0", Session.current());
    Check.that(filled.memory().isKnownTo(Session.current()), "the worker can reach it");
    Check.equal(wanted, filled.memory().buffer().getFloat(0));
    Check.equal(wanted, filled.memory().buffer().getFloat(4 * (COUNT - 1)));
    filled.memory().release();
    return filled.memory();
  }

  public static void anArrayIsCopiedIntoTheSameSharedMemoryEachTime() {
    MSTensor tensor = MSTensor.describing(LARGE, Session.current());
    float[] data = Models.filled(COUNT, 1);
    tensor.setData(data);
    Memory first = sent(tensor, 1);
    Arrays.fill(data, 2);
    Check.that(sent(tensor, 2) == first, "the same memory");
    tensor.setData(Models.filled(COUNT, 3));
    Check.that(sent(tensor, 3) == first, "also for another array");
    tensor.free();
  }

  public static void aBufferIsCopiedOnce() {
    ByteBuffer data = ByteBuffer.allocateDirect(4 * COUNT).order(ByteOrder.LITTLE_ENDIAN);
    data.asFloatBuffer().put(Models.filled(COUNT, 1));
    Session.current(); // where there is one, a new tensor is made in its memory
    MSTensor tensor = MSTensor.of("x", DataType.kNumberTypeFloat32, new int[] {COUNT}, data);
    Memory first = sent(tensor, 1);
    Check.that(sent(tensor, 1) == first, "no other memory");
    data.asFloatBuffer().put(Models.filled(COUNT, 2));
    Check.that(tensor.setData(data), "set");
    Check.that(sent(tensor, 2) == first, "in place");
    tensor.free();
  }

  public static void newDataDoesNotDisturbARequestUnderWay() {
    MSTensor tensor = MSTensor.of("x", Models.filled(COUNT, 1));
    Filled request = tensor.content("input 0", Session.current());
    Check.that(tensor.setData(Models.filled(COUNT, 2)), "set");
    Check.that(sent(tensor, 2) != request.memory(), "other memory");
    Check.equal(1f, request.memory().buffer().getFloat(0));
    request.memory().release();
    tensor.free();
  }

  public static void memoryOnTheHeapIsExchangedOnce() {
    MSTensor tensor = MSTensor.describing(LARGE, Session.current());
    tensor.take(new Filled(LARGE, heap(1)));
    Check.that(sent(tensor, 1) == sent(tensor, 1), "kept");
    tensor.free();
  }

  public static void aViewGoesOnToCountWhereverItIs() {
    MSTensor tensor = MSTensor.describing(LARGE, Session.current());
    tensor.take(new Filled(LARGE, heap(1)));
    ByteBuffer view = tensor.getByteBuffer();
    sent(tensor, 1);
    view.putFloat(0, 2).putFloat(4 * (COUNT - 1), 2);
    sent(tensor, 2);
    tensor.free();
  }

  public static void aViewOfSharedMemoryIsValidForEver() {
    MSTensor tensor = MSTensor.describing(LARGE, Session.current());
    ByteBuffer view = tensor.getByteBuffer();
    Check.that(view.isDirect(), "the shared memory itself");
    Check.equal(0f, view.getFloat(0));
    view.putFloat(0, 1).putFloat(4 * (COUNT - 1), 1);
    sent(tensor, 1);
    tensor.free();
    MSTensor next = MSTensor.of("y", Models.filled(COUNT, 2));
    sent(next, 2);
    Check.equal(1f, view.getFloat(0));
    next.free();
  }

  public static void freeInAnotherThreadDoesNotEndTheProcess() {
    for (int round = 0; round < 50; ++round) {
      MSTensor tensor = MSTensor.of("x", Models.filled(COUNT, 1));
      Check.threads(3, i -> {
        if (i == 0) {
          tensor.free();
        } else {
          int length = tensor.getFloatData().length;
          Check.that(length == 0 || length == COUNT, "all or nothing");
        }
      });
    }
  }

  private static Memory heap(float value) {
    Memory memory = Memory.onHeap(4 * COUNT);
    memory.buffer().asFloatBuffer().put(Models.filled(COUNT, value));
    return memory;
  }
}
