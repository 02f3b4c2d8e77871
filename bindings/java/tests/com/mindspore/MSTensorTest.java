package com.mindspore;

import com.mindspore.check.Check;
import com.mindspore.check.Logged;
import com.mindspore.config.DataType;
import com.mindspore.internal.Filled;
import com.mindspore.internal.Memory;
import com.mindspore.internal.TensorInfo;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;

/** Tests of MSTensor, without a model. */
public final class MSTensorTest {
  private static final int FLOAT32 = DataType.kNumberTypeFloat32;
  private static final int FLOAT16 = DataType.kNumberTypeFloat16;

  private MSTensorTest() {}

  private static MSTensor of(int type, long... shape) {
    return MSTensor.describing(new TensorInfo("x", type, shape), null);
  }

  private static ByteBuffer direct(float... numbers) {
    ByteBuffer buffer =
        ByteBuffer.allocateDirect(4 * numbers.length).order(ByteOrder.LITTLE_ENDIAN);
    buffer.asFloatBuffer().put(numbers);
    return buffer;
  }

  public static void createTensorCopiesADirectBuffer() {
    ByteBuffer data = direct(1, 2, 3, 4, 5, 6);
    data.position(7).limit(9); // not looked at
    MSTensor tensor = MSTensor.createTensor("\u540d", FLOAT32, new int[] {2, 3}, data);
    data.clear().putFloat(0, 99);
    Check.equal("\u540d", tensor.tensorName());
    Check.equal(new int[] {2, 3}, tensor.getShape());
    Check.equal(FLOAT32, tensor.getDataType());
    Check.equal(24L, tensor.size());
    Check.equal(6, tensor.elementsNum());
    Check.equal(new float[] {1, 2, 3, 4, 5, 6}, tensor.getFloatData());
    Check.equal(new float[] {1, 2, 3, 4, 5, 6}, tensor.getData());
    Check.that(tensor.getMSTensorPtr() != 0, "alive");
  }

  public static void createTensorIsNullForArgumentsThatAreNullOrOfNoType() {
    ByteBuffer data = direct(1);
    int[] shape = {1};
    try (Logged log = new Logged()) {
      Check.equal(null, MSTensor.createTensor(null, FLOAT32, shape, data));
      Check.equal(null, MSTensor.createTensor("x", FLOAT32, null, data));
      Check.equal(null, MSTensor.createTensor("x", FLOAT32, shape, null));
      Check.equal(null, MSTensor.createTensor("x", 29, shape, data));
      Check.equal(null, MSTensor.createTensor("x", 45, shape, data));
      Check.equal(null, MSTensor.createTensor(null, 1.0f));
      Check.equal(null, MSTensor.createTensor("x", null));
      Check.equal(null, MSTensor.createTensor("x", "text"));
      Check.equal(null, MSTensor.createTensor("x", new byte[2]));
      Check.equal(null, MSTensor.createTensor("x", new Float[] {1f}));
      Check.equal(null, MSTensor.createTensor("x", new float[0]));
      Check.equal(null, MSTensor.createTensor("x", new float[2][0]));
      Check.equal(null, MSTensor.createTensor("x", new float[2][]));
      Check.equal(13, log.lines().size());
      Check.contains(log.lines().get(3), "SEVERE: createTensor: got data type 29");
    }
  }

  public static void createTensorIsEmptyForArgumentsThatDoNotFit() {
    ByteBuffer data = direct(1, 2);
    for (MSTensor tensor :
        new MSTensor[] {MSTensor.createTensor("x", FLOAT32, new int[] {2}, ByteBuffer.allocate(8)),
            MSTensor.createTensor("x", FLOAT32, new int[] {3}, data),
            MSTensor.createTensor("x", FLOAT32, new int[] {-1, 2}, data),
            MSTensor.createTensor("x", FLOAT32, new int[] {-2}, data),
            MSTensor.createTensor("x", FLOAT32, new int[] {1 << 30, 1 << 30, 16}, data),
            MSTensor.createTensor("x", new float[][] {{1, 2}, {3}}),
            MSTensor.createTensor("x", new float[][] {{1, 2}, null})}) {
      Check.equal(0L, tensor.getMSTensorPtr());
      Check.that(!tensor.lastError().isEmpty(), "it says why");
    }
    MSTensor heap = MSTensor.createTensor("x", FLOAT32, new int[] {2}, ByteBuffer.allocate(8));
    Check.contains(heap.lastError(), "allocateDirect");
    Check.contains(heap.lastError(), "createTensor: got");
  }

  public static void ofThrowsInstead() {
    Check.throwsA(MSException.class, () -> MSTensor.of("x", "text"));
    Check.throwsA(MSException.class, () -> MSTensor.of(null, 1));
    Check.throwsA(MSException.class, () -> MSTensor.of("x", 99, new int[] {1}, direct(1)));
    MSException error =
        Check.throwsA(MSException.class, () -> MSTensor.of("x", FLOAT32, new int[] {2}, direct(1)));
    Check.contains(error.getMessage(), "got a ByteBuffer of capacity 4, wanted 8");
    Check.equal(new int[] {7}, MSTensor.of("x", 7).getIntData());
    Check.equal(
        new float[] {1}, MSTensor.of("x", FLOAT32, new int[] {1}, direct(1)).getFloatData());
  }

  public static void arraysOfAnyRankBecomeTensors() {
    MSTensor floats = MSTensor.of("f", new float[][][] {{{1}, {2}, {3}}, {{4}, {5}, {6}}});
    Check.equal(new int[] {2, 3, 1}, floats.getShape());
    Check.equal(FLOAT32, floats.getDataType());
    Check.equal(new float[] {1, 2, 3, 4, 5, 6}, floats.getFloatData());
    MSTensor longs = MSTensor.of("l", new long[] {1, -2});
    Check.equal(DataType.kNumberTypeInt64, longs.getDataType());
    Check.equal(new long[] {1, -2}, longs.getLongData());
    MSTensor ints = MSTensor.of("i", new int[][] {{1, -2}});
    Check.equal(DataType.kNumberTypeInt32, ints.getDataType());
    Check.equal(new int[] {1, -2}, ints.getData());
    MSTensor bools = MSTensor.of("b", new boolean[] {true, false});
    Check.equal(DataType.kNumberTypeBool, bools.getDataType());
    Check.equal(new byte[] {1, 0}, bools.getData());
    MSTensor doubles = MSTensor.of("d", new double[][] {{1.5}, {-2}});
    Check.equal(DataType.kNumberTypeFloat64, doubles.getDataType());
    Check.equal(-2.0, doubles.getByteBuffer().getDouble(8));
  }

  public static void oneNumberIsATensorWithoutDims() {
    Object[] numbers = {1.5f, 2.5, 3, 4L, true};
    int[] types = {43, 44, 34, 35, 30};
    for (int i = 0; i < numbers.length; ++i) {
      MSTensor tensor = MSTensor.createTensor("x", numbers[i]);
      Check.equal(new int[0], tensor.getShape());
      Check.equal(1, tensor.elementsNum());
      Check.equal(types[i], tensor.getDataType());
    }
    Check.equal(new float[] {1.5f}, MSTensor.createTensor("x", 1.5f).getFloatData());
    Check.equal(new long[] {4}, MSTensor.createTensor("x", 4L).getData());
  }

  public static void anEmptyTensorIsAsOneThatWasFreed() {
    MSTensor freed = MSTensor.of("x", 1);
    freed.free();
    freed.free();
    freed.close();
    for (MSTensor tensor : new MSTensor[] {new MSTensor(), new MSTensor(0), freed}) {
      Check.equal(new int[0], tensor.getShape());
      Check.equal(0, tensor.getDataType());
      Check.equal(0L, tensor.size());
      Check.equal(0, tensor.elementsNum());
      Check.equal(null, tensor.tensorName());
      Check.equal(0L, tensor.getMSTensorPtr());
      Check.equal(new byte[0], tensor.getData());
      Check.equal(new byte[0], tensor.getByteData());
      Check.equal(new float[0], tensor.getFloatData());
      Check.equal(null, tensor.getByteBuffer());
      Check.that(!tensor.setData(new byte[0]) && !tensor.setShape(new int[0]), "refused");
      Check.contains(tensor.lastError(), "freed");
    }
  }

  public static void aNativePointerIsNotTaken() {
    try (Logged log = new Logged()) {
      Check.equal(0L, new MSTensor(0x7f0000L).getMSTensorPtr());
      Check.equal(1, log.lines().size());
    }
  }

  public static void arraysAreKeptByReference() {
    MSTensor tensor = of(FLOAT32, 2);
    float[] data = {1, 2};
    Check.that(tensor.setData(data), "set");
    Check.that(tensor.getData() == data, "the very array");
    data[0] = 7;
    Check.equal(7f, sent(tensor).getFloat(0));
    data[0] = 8; // also after a request (J2)
    Check.equal(8f, sent(tensor).getFloat(0));
    Check.equal(new float[] {8, 2}, tensor.getFloatData());
    tensor.setData(new float[] {3, 4});
    Check.equal(3f, sent(tensor).getFloat(0));
    Check.that(tensor.getFloatData() != tensor.getFloatData(), "copies");
  }

  private static ByteBuffer sent(MSTensor tensor) {
    Filled filled = tensor.content("input 0", null);
    try {
      byte[] copy = new byte[filled.memory().size()];
      filled.memory().buffer().get(copy);
      return ByteBuffer.wrap(copy).order(ByteOrder.LITTLE_ENDIAN);
    } finally {
      filled.memory().release();
    }
  }

  public static void dataIsConvertedAsTheTypeSays() {
    MSTensor half = of(FLOAT16, 3);
    Check.that(half.setData(new float[] {1, -2, 65520}), "set");
    Check.equal(new byte[] {0, 0x3c, 0, (byte) 0xc0, 0, 0x7c}, half.getByteData());
    Check.equal(new float[] {1, -2, Float.POSITIVE_INFINITY}, half.getFloatData());
    Check.equal(half.getByteData(), sent(half).array());
    Check.that(half.setData(new byte[] {0, 0x3c, 0, 0x40, 0, 0}), "as bytes");
    Check.equal(new float[] {1, 2, 0}, half.getFloatData());

    MSTensor ints = of(DataType.kNumberTypeInt32, 2);
    Check.that(ints.setData(new byte[] {1, 0, 0, 0, 0, 1, 0, 0}), "as bytes");
    Check.equal(new int[] {1, 256}, ints.getIntData());
    MSTensor longs = of(DataType.kNumberTypeInt64, 1);
    Check.that(longs.setData(new byte[] {-1, -1, -1, -1, -1, -1, -1, -1}), "as bytes");
    Check.equal(new long[] {-1}, longs.getLongData());
    MSTensor floats = of(FLOAT32, 1);
    Check.that(floats.setData(new byte[] {0, 0, (byte) 0x80, 0x3f}), "as bytes");
    Check.equal(new float[] {1}, floats.getFloatData());
  }

  public static void gettersOfAnotherTypeAreEmpty() {
    MSTensor tensor = MSTensor.of("x", new int[] {1});
    Check.equal(new float[0], tensor.getFloatData());
    Check.equal(new long[0], tensor.getLongData());
    Check.equal(new int[0], of(DataType.kNumberTypeInt32, 2).getIntData()); // no data yet
    Check.equal(new int[0], of(DataType.kNumberTypeInt32, 2).getData());
    Check.equal(new int[0], MSTensor.of("x", 1f).getIntData());
  }

  public static void typesWithoutANameHaveTheirBytes() {
    for (int type : new int[] {45, 51, 52}) {
      MSTensor tensor = of(type, 1);
      byte[] bytes = new byte[(int) tensor.size()];
      Arrays.fill(bytes, (byte) 7);
      Check.that(tensor.setData(bytes), "set");
      Check.equal(bytes, tensor.getByteData());
      Check.equal(7, (int) tensor.getByteBuffer().get(bytes.length - 1));
      Check.equal(type, tensor.getDataType());
    }
  }

  public static void dataThatDoesNotFitIsRefusedAndToldOf() {
    MSTensor tensor = of(FLOAT32, 2);
    Check.that(!tensor.setData(new float[3]), "too many");
    Check.contains(tensor.lastError(), "got float[3], wanted 2 elements for tensor 'x'");
    Check.that(!tensor.setData(new int[2]), "another type");
    Check.contains(tensor.lastError(), "the array fits data type [34]");
    Check.that(!tensor.setData(new long[2]), "another type");
    Check.that(!tensor.setData(new byte[7]), "too few");
    Check.contains(tensor.lastError(), "got 7 bytes, wanted 8");
    Check.that(!tensor.setData(ByteBuffer.allocate(8)), "on the heap");
    Check.that(!tensor.setData(ByteBuffer.allocateDirect(9)), "too many");
    Check.that(!tensor.setData((byte[]) null) && !tensor.setData((float[]) null), "null");
    Check.that(!tensor.setData((int[]) null) && !tensor.setData((long[]) null), "null");
    Check.that(!tensor.setData((ByteBuffer) null) && !tensor.setShape(null), "null");
    Check.that(!tensor.hasData(), "nothing was set");
    MSTensor open = of(FLOAT32, -1, 2);
    Check.equal(0L, open.size());
    Check.equal(0, open.elementsNum());
    Check.that(!open.setData(new float[0]), "open");
    Check.contains(open.lastError(), "call setShape or resize first");
    Check.equal(null, open.getByteBuffer());
  }

  public static void aShapeKeepsDataThatFits() {
    MSTensor tensor = MSTensor.of("x", new float[] {1, 2, 3, 4});
    Check.that(tensor.setShape(new int[] {2, 2}), "as many");
    Check.equal(new float[] {1, 2, 3, 4}, tensor.getFloatData());
    Check.that(tensor.setShape(new int[] {3}), "fewer");
    Check.equal(new float[0], tensor.getFloatData());
    Check.that(tensor.setData(new float[3]), "new data");
    Check.that(tensor.setShape(new int[] {-1, 3}), "open");
    Check.equal(new int[] {-1, 3}, tensor.getShape());
    Check.that(!tensor.hasData() && !tensor.setShape(new int[] {-2}), "refused");
    Check.that(!tensor.setShape(new int[65]), "65 dims");
    Check.that(!tensor.setShape(new int[] {1 << 29, 1}), "2 GiB");
    Check.contains(tensor.lastError(), "2147483647");
    Check.equal(new int[] {-1, 3}, tensor.getShape());
    int[] shape = {5};
    tensor.setShape(shape);
    shape[0] = 6;
    Check.equal(new int[] {5}, tensor.getShape());
  }

  public static void sizesBeyondIntAreTold() {
    MSTensor tensor = of(FLOAT32, 1L << 20, 1L << 20);
    Check.equal(1L << 42, tensor.size());
    Check.equal(0, tensor.elementsNum());
    Check.equal(new int[] {Integer.MAX_VALUE}, of(FLOAT32, 1L << 40).getShape());
  }

  public static void aViewIsTheDataItself() {
    MSTensor tensor = of(FLOAT32, 2);
    ByteBuffer view = tensor.getByteBuffer();
    Check.equal(ByteOrder.LITTLE_ENDIAN, view.order());
    Check.equal(0f, view.getFloat(4));
    view.putFloat(0, 5).putFloat(4, 6);
    Check.equal(new float[] {5, 6}, tensor.getFloatData());
    Check.equal(5f, sent(tensor).getFloat(0));
    tensor.setData(direct(7, 8));
    Check.equal(7f, view.getFloat(0));
    tensor.setData(new float[] {9, 10});
    view = tensor.getByteBuffer(); // from now on it counts, not the array
    Check.equal(9f, view.getFloat(0));
    view.putFloat(0, 11);
    Check.equal(11f, sent(tensor).getFloat(0));
    Check.equal(new float[] {11, 10}, tensor.getData());
    tensor.free();
    Check.equal(11f, view.getFloat(0));
  }

  public static void aResultReplacesWhatWasThere() {
    MSTensor tensor = of(FLOAT32, -1);
    tensor.setShape(new int[] {1});
    tensor.setData(new float[] {1});
    Memory memory = Memory.onHeap(8);
    memory.buffer().putInt(4, 6);
    tensor.take(new Filled(new TensorInfo("other", 34, new long[] {1, 2}), memory));
    Check.equal("x", tensor.tensorName());
    Check.equal(new int[] {1, 2}, tensor.getShape());
    Check.equal(new int[] {0, 6}, tensor.getData());
  }

  public static void throwingTurnsFalseAndNullIntoExceptions() {
    MSTensor tensor = of(FLOAT32, -1).throwing();
    MSException error = Check.throwsA(MSException.class, () -> tensor.setData(new float[1]));
    Check.equal("InputError", error.kind());
    Check.equal(-101, error.code());
    Check.throwsA(MSException.class, tensor::getByteBuffer);
    Check.throwsA(MSException.class, () -> tensor.setShape(null));
  }
}
