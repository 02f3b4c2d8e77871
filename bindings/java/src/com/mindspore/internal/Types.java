package com.mindspore.internal;

import com.mindspore.config.DataType;

/** Types of elements, by the numbers of docs/wire.md, and the shapes of tensors. */
public final class Types {
  /** The most dims that a tensor has. */
  public static final int MAX_RANK = 64;

  private Types() {}

  /** The bytes of an element; 0 when there is no such type. */
  public static int itemBytes(int type) {
    return switch (type) {
      case 30, 32, 37 -> 1; // bool, int8, uint8
      case 33, 38, 42, 45 -> 2; // int16, uint16, float16, bfloat16
      case 34, 39, 43 -> 4; // int32, uint32, float32
      case 31, 36, 41 -> 4; // int, uint and float: taken for those of 32 bits
      case 35, 40, 44, 51 -> 8; // int64, uint64, float64, complex64
      case 52 -> 16; // complex128
      default -> 0;
    };
  }

  /** The type itself for the three names that mean another one. */
  public static int meant(int type) {
    switch (type) {
      case DataType.kNumberTypeInt:
        return DataType.kNumberTypeInt32;
      case DataType.kNumberTypeUInt:
        return DataType.kNumberTypeUInt32;
      case DataType.kNumberTypeFloat:
        return DataType.kNumberTypeFloat32;
      default:
        return type;
    }
  }

  /** Whether all dims are known. */
  public static boolean isKnown(long[] shape) {
    for (long dim : shape) {
      if (dim < 0) {
        return false;
      }
    }
    return true;
  }

  /** Whether all dims are known, and one of them is 0. */
  public static boolean isEmpty(long[] shape) {
    boolean hasZero = false;
    for (long dim : shape) {
      hasZero |= dim == 0;
    }
    return hasZero && isKnown(shape);
  }

  /** The product of the dims; 0 when one of them is open, or it is more than a long can count. */
  public static long elements(long[] shape) {
    // Zeros first: a shape with one has no elements, however large its other dims are.
    for (long dim : shape) {
      if (dim <= 0) {
        return 0;
      }
    }
    long count = 1;
    for (long dim : shape) {
      if (count > Long.MAX_VALUE / dim) {
        return 0;
      }
      count *= dim;
    }
    return count;
  }

  /** What such a tensor takes, in bytes; 0 as above. */
  public static long bytes(int type, long[] shape) {
    long count = elements(shape);
    int item = itemBytes(type);
    return item == 0 || count > Long.MAX_VALUE / item ? 0 : count * item;
  }

  /** As "[2,3]", for messages. */
  public static String shown(long[] shape) {
    StringBuilder text = new StringBuilder("[");
    for (int i = 0; i < shape.length; ++i) {
      text.append(i == 0 ? "" : ",").append(shape[i]);
    }
    return text.append(']').toString();
  }
}
