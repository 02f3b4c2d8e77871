package com.mindspore.internal;

import com.mindspore.config.DataType;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/** Java arrays, and the bytes that they are in a tensor. All buffers are little-endian. */
public final class Elements {
  private Elements() {}

  /** Writes an array of a primitive type; floats become half precision where the tensor has it. */
  public static void put(Object array, int type, ByteBuffer into) {
    if (array instanceof byte[] bytes) {
      into.put(bytes);
    } else if (array instanceof float[] floats&& type == DataType.kNumberTypeFloat16) {
      for (float number : floats) {
        into.putShort(Half.of(number));
      }
    } else if (array instanceof float[] floats) {
      into.asFloatBuffer().put(floats);
      moved(into, floats.length * Float.BYTES);
    } else if (array instanceof double[] doubles) {
      into.asDoubleBuffer().put(doubles);
      moved(into, doubles.length * Double.BYTES);
    } else if (array instanceof int[] ints) {
      into.asIntBuffer().put(ints);
      moved(into, ints.length * Integer.BYTES);
    } else if (array instanceof long[] longs) {
      into.asLongBuffer().put(longs);
      moved(into, longs.length * Long.BYTES);
    } else {
      for (boolean bit : (boolean[]) array) {
        into.put((byte) (bit ? 1 : 0));
      }
    }
  }

  /** The bytes of an array; not a copy where they are its own. */
  public static ByteBuffer bytesOf(Object array, int type, int size) {
    if (array instanceof byte[] bytes) {
      return ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
    }
    ByteBuffer bytes = ByteBuffer.allocate(size).order(ByteOrder.LITTLE_ENDIAN);
    put(array, type, bytes);
    return bytes.flip();
  }

  /** All that are left in the buffer. */
  public static byte[] bytes(ByteBuffer from) {
    byte[] bytes = new byte[from.remaining()];
    from.get(bytes);
    return bytes;
  }

  /** All that are left in the buffer, of type Float32 or Float16. */
  public static float[] floats(ByteBuffer from, int type) {
    if (type == DataType.kNumberTypeFloat16) {
      float[] floats = new float[from.remaining() / Short.BYTES];
      for (int i = 0; i < floats.length; ++i) {
        floats[i] = Half.toFloat(from.getShort());
      }
      return floats;
    }
    float[] floats = new float[from.remaining() / Float.BYTES];
    from.asFloatBuffer().get(floats);
    return floats;
  }

  /** All that are left in the buffer. */
  public static int[] ints(ByteBuffer from) {
    int[] ints = new int[from.remaining() / Integer.BYTES];
    from.asIntBuffer().get(ints);
    return ints;
  }

  /** All that are left in the buffer. */
  public static long[] longs(ByteBuffer from) {
    long[] longs = new long[from.remaining() / Long.BYTES];
    from.asLongBuffer().get(longs);
    return longs;
  }

  private static void moved(ByteBuffer buffer, int bytes) {
    buffer.position(buffer.position() + bytes);
  }
}
