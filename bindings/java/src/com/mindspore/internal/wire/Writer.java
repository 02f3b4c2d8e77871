package com.mindspore.internal.wire;

import com.mindspore.internal.Errors;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.CharBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.Charset;
import java.nio.charset.StandardCharsets;

/** Appends fields to a message, little-endian and without padding. */
final class Writer {
  private static final int SMALL = 1 << 13;
  private static final int LARGE = 1 << 18; // what is larger is not kept for the next message

  private static final Charset FILE_NAMES = fileNames();

  private final int head;
  private ByteBuffer data = allocated(SMALL);

  /** Leaves {@code head} bytes free, for the header of a frame. */
  Writer(int head) {
    this.head = head;
    clear();
  }

  /** Begins anew. */
  void clear() {
    if (data.capacity() > LARGE) {
      Unmapping.free(data);
      data = allocated(SMALL);
    }
    data.clear().position(head);
  }

  void u8(int value) {
    room(1).put((byte) value);
  }

  void u16(int value) {
    room(2).putShort((short) value);
  }

  void u32(int value) {
    room(4).putInt(value);
  }

  void u64(long value) {
    room(8).putLong(value);
  }

  /** The bytes from position to limit, which both stay. */
  void bytes(ByteBuffer value) {
    room(value.remaining()).put(value.duplicate());
  }

  /** A u32 length, then the bytes. */
  void blob(ByteBuffer value) {
    u32(value.remaining());
    bytes(value);
  }

  void text(String value) {
    text(value, Limits.TEXT);
  }

  void text(String value, int most) {
    ByteBuffer encoded = encoded(value, StandardCharsets.UTF_8);
    if (encoded == null) {
      throw Errors.wrong("'" + shortened(value)
          + "' cannot be sent to the worker: it has half a character of two");
    }
    sized(encoded, value, most);
  }

  /**
   * The bytes that this program's files have for that name. Where its locale cannot write it, as C
   * cannot, it is UTF-8, which the name most likely is.
   */
  void path(String value) {
    ByteBuffer encoded = encoded(value, FILE_NAMES);
    if (encoded == null) {
      text(value);
    } else {
      sized(encoded, value, Limits.TEXT);
    }
  }

  void dims(long[] dims) {
    if (dims.length > Limits.DIMS) {
      throw Errors.wrong(
          "a shape has " + dims.length + " dims, at most " + Limits.DIMS + " can be sent");
    }
    u16(dims.length);
    for (long dim : dims) {
      u64(dim);
    }
  }

  /** How many of something follow. */
  void count(int count, String what) {
    if (count > Limits.ITEMS) {
      throw Errors.wrong(
          "a request has " + count + " " + what + ", at most " + Limits.ITEMS + " can be sent");
    }
    u32(count);
  }

  /** What was written, with the head, to be read or sent. */
  ByteBuffer written() {
    return data.duplicate().order(ByteOrder.LITTLE_ENDIAN).flip();
  }

  private void sized(ByteBuffer encoded, String value, int most) {
    if (encoded.remaining() > most) {
      throw Errors.wrong("'" + shortened(value) + "' cannot be sent to the worker: it has "
          + encoded.remaining() + " bytes, at most " + most + " can");
    }
    blob(encoded);
  }

  private ByteBuffer room(int bytes) {
    if (data.remaining() < bytes) {
      long wanted = (long) data.position() + bytes;
      long most = (long) head + Limits.BODY;
      if (wanted > most) {
        throw Errors.wrong("a request of " + (wanted - head)
            + " bytes or more cannot be sent, at most " + Limits.BODY + " can");
      }
      ByteBuffer before = data;
      data = allocated((int) Math.min(most, Math.max(wanted, 2L * before.capacity())));
      data.put(before.flip());
      Unmapping.free(before);
    }
    return data;
  }

  private static Charset fileNames() {
    try {
      return Charset.forName(System.getProperty("sun.jnu.encoding", "UTF-8"));
    } catch (IllegalArgumentException unknown) {
      return StandardCharsets.UTF_8;
    }
  }

  /** Null where the charset has no such text. */
  private static ByteBuffer encoded(String value, Charset charset) {
    try {
      return charset.newEncoder().encode(CharBuffer.wrap(value));
    } catch (CharacterCodingException impossible) {
      return null;
    }
  }

  private static String shortened(String value) {
    return value.length() < 100 ? value : value.substring(0, 99) + "...";
  }

  private static ByteBuffer allocated(int size) {
    return ByteBuffer.allocateDirect(size).order(ByteOrder.LITTLE_ENDIAN);
  }
}
