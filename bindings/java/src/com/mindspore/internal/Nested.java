package com.mindspore.internal;

import com.mindspore.config.DataType;
import java.lang.invoke.MethodType;
import java.lang.reflect.Array;
import java.nio.ByteBuffer;

/**
 * A Java array of any rank, or a boxed number, as the data of a tensor.
 *
 * @param array of a boxed number: an array of one
 * @param type a number of DataType
 * @param shape of a boxed number: no dims
 */
public record Nested(Object array, int type, long[] shape) {
  /** What this is; throws when no tensor has such data. Inner arrays are looked at by putInto(). */
  public static Nested of(Object value) {
    int rank = 0;
    Class<?> kind = value.getClass();
    for (; kind.isArray(); kind = kind.getComponentType()) {
      ++rank;
    }
    if (rank == 0) {
      kind = MethodType.methodType(kind).unwrap().returnType();
    }
    int type = typeOf(kind);
    if (type == 0 || rank > Types.MAX_RANK) {
      throw Errors.wrong("got a " + value.getClass().getSimpleName()
          + ", wanted an array of float, double, int, long or boolean of up to " + Types.MAX_RANK
          + " dims, or one such number");
    }
    if (rank == 0) {
      Object one = Array.newInstance(kind, 1);
      Array.set(one, 0, value);
      return new Nested(one, type, new long[0]);
    }
    return new Nested(value, type, shapeOf(value, rank));
  }

  /** Writes all elements, the last dim fastest; throws when inner arrays differ in length. */
  public void putInto(ByteBuffer into) {
    if (shape.length == 0) {
      Elements.put(array, type, into);
    } else {
      putInto(array, 0, into);
    }
  }

  private static long[] shapeOf(Object array, int rank) {
    long[] shape = new long[rank];
    Object part = array;
    for (int i = 0; i < rank; ++i) {
      shape[i] = part == null ? 0 : Array.getLength(part);
      if (shape[i] == 0) {
        throw Errors.wrong("the array is empty, or null, in dim " + i);
      }
      part = Array.get(part, 0);
    }
    return shape;
  }

  private void putInto(Object part, int dim, ByteBuffer into) {
    int length = part == null ? 0 : Array.getLength(part);
    if (length != shape[dim]) {
      throw Errors.wrong("the arrays in dim " + dim + " differ in length: one has " + length
          + " elements, the first " + shape[dim]);
    }
    if (dim == shape.length - 1) {
      Elements.put(part, type, into);
      return;
    }
    for (Object inner : (Object[]) part) {
      putInto(inner, dim + 1, into);
    }
  }

  private static int typeOf(Class<?> kind) {
    if (kind == float.class) {
      return DataType.kNumberTypeFloat32;
    } else if (kind == double.class) {
      return DataType.kNumberTypeFloat64;
    } else if (kind == int.class) {
      return DataType.kNumberTypeInt32;
    } else if (kind == long.class) {
      return DataType.kNumberTypeInt64;
    }
    return kind == boolean.class ? DataType.kNumberTypeBool : 0;
  }
}
