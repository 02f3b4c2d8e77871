package com.mindspore.internal;

import com.mindspore.config.DataType;

/** Types of elements, by the numbers of docs/wire.md, and the shapes of tensors. */
public final class Types {
  /** The most dims that a tensor has. */
  public static final int MAX_RANK = 64;

  private Types() {}

  /** The bytes of an element; 0 when there is no such type. */
  public static int itemBytes(int type) {
    switch (type) {
      case 30: // bool
      case 32: // int8
      case 37: // uint8
        return 1;
      case 33: // int16
      case 38: // uint16
      case 42: // float16
      case 45: // bfloat16
        return 2;
      case 31: // int, uint and float: taken for those of 32 bits
      case 34:
      case 36:
      case 39:
      case 41:
      case 43:
        return 4;
      case 35: // int64
      case 40: // uint64
      case 44: // float64
      case 51: // complex64
        return 8;
      case 52: // complex128
        return 16;
      default:
        return 0;
    }
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
