package com.mindspore.internal.wire;

import com.mindspore.internal.Errors;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;

/**
 * Takes fields off the front of a message. Nothing in it is believed: a length is compared with
 * what is there, and with its limit, before anything is made of it. What does not fit is a
 * WireError, in which {@code what} names the field.
 */
final class Reader {
  private final ByteBuffer data;

  /** Reads from position to limit. */
  Reader(ByteBuffer data) {
    this.data = data.slice().order(ByteOrder.LITTLE_ENDIAN);
  }

  int u8(String what) {
    return need(1, what).get() & 0xff;
  }

  int u16(String what) {
    return need(2, what).getShort() & 0xffff;
  }

  /** The number's bits; see Integer.toUnsignedString. */
  int u32(String what) {
    return need(4, what).getInt();
  }

  /** The number's bits; negative where it is 2^63 or more. */
  long u64(String what) {
    return need(8, what).getLong();
  }

  /** Bytes that lie in the message, and are valid for as long as that is. */
  ByteBuffer take(int size, String what) {
    need(size, what);
    ByteBuffer taken = data.slice(data.position(), size).order(ByteOrder.LITTLE_ENDIAN);
    data.position(data.position() + size);
    return taken;
  }

  /** A u32 length and the bytes. */
  ByteBuffer blob(String what, int most) {
    int size = u32(what);
    if (Integer.compareUnsigned(size, most) > 0) {
      throw Errors.wire(what + " has " + Integer.toUnsignedString(size) + " bytes, at most " + most
          + " are allowed");
    }
    return take(size, what);
  }

  String text(String what) {
    return text(what, Limits.TEXT);
  }

  /** What is not UTF-8 in it is shown as well as it can be: a worker's words never fail. */
  String text(String what, int most) {
    ByteBuffer raw = blob(what, most);
    return StandardCharsets.UTF_8.decode(raw).toString();
  }

  long[] dims(String what) {
    int count = u16(what);
    if (count > Limits.DIMS) {
      throw Errors.wire(what + " has " + count + " dims, at most " + Limits.DIMS + " are allowed");
    }
    need(8 * count, what);
    long[] dims = new long[count];
    for (int i = 0; i < count; ++i) {
      dims[i] = data.getLong();
    }
    return dims;
  }

  /** How many of something follow, each of which takes at least so many bytes. */
  int count(String what, int bytes) {
    int count = u32(what);
    int most = Math.min(Limits.ITEMS, data.remaining() / bytes);
    if (Integer.compareUnsigned(count, most) > 0) {
      throw Errors.wire("the worker's message announces " + Integer.toUnsignedString(count) + " "
          + what + ", there is room for " + data.remaining() / bytes + ", and at most "
          + Limits.ITEMS + " are allowed");
    }
    return count;
  }

  private ByteBuffer need(int size, String what) {
    if (size > data.remaining()) {
      throw Errors.wire("the worker's message ends inside " + what + ": wanted " + size
          + " bytes at byte " + data.position() + ", there are " + data.remaining());
    }
    return data;
  }
}
