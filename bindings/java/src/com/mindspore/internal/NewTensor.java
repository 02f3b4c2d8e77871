package com.mindspore.internal;

import com.mindspore.config.DataType;
import java.nio.ByteBuffer;
import java.util.stream.IntStream;

/** Tensors that the user makes. Each method throws when its arguments make none. */
public final class NewTensor {
  private NewTensor() {}

  /** All are there, and the type has a name in DataType. */
  public static void check(String name, int type, int[] shape, ByteBuffer data) {
    if (name == null || shape == null || data == null) {
      throw Errors.wrong("createTensor: got null for the name, the shape or the data");
    }
    if (type < DataType.kNumberTypeBool || type > DataType.kNumberTypeFloat64) {
      throw Errors.wrong("createTensor: got data type " + type + ", wanted a number of DataType");
    }
  }

  /** Both are there, and the data is an array, or one number. */
  public static Nested check(String name, Object data) {
    if (name == null || data == null) {
      throw Errors.wrong("createTensor: got null for the name or the data");
    }
    return Nested.of(data);
  }

  /** One with a copy of the data. */
  public static Tensor of(String name, int type, int[] shape, ByteBuffer data) {
    check(name, type, shape, data);
    Tensor made = described(name, type, longs(shape));
    made.copy("createTensor", data);
    return made;
  }

  /** One with a copy of the data. */
  public static Tensor of(String name, Object data) {
    Nested nested = check(name, data);
    Tensor made = described(name, nested.type(), nested.shape());
    made.copy(nested);
    return made;
  }

  /** As shapes are inside. */
  public static long[] longs(int[] shape) {
    return IntStream.of(shape).asLongStream().toArray();
  }

  private static Tensor described(String name, int type, long[] shape) {
    TensorInfo info = new TensorInfo(name, type, shape);
    Tensor.checkShape(info);
    return new Tensor(info, null);
  }
}
