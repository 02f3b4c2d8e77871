package com.mindspore.internal.wire;

import com.mindspore.MSException;
import com.mindspore.internal.Errors;
import java.nio.ByteBuffer;

/** Frames: a header of 24 bytes, and a body. */
final class Frame {
  static final int HEADER_BYTES = 24;

  private static final int MAGIC = 0x464c534d; // "MSLF"

  private Frame() {}

  /**
   * What stands before a body.
   *
   * @param size of the body
   */
  record Header(Message message, long request, int size) {}

  /** Fills in the first bytes of a frame that is whole otherwise. */
  static ByteBuffer headed(ByteBuffer frame, Message message, long request) {
    frame.putInt(0, MAGIC);
    frame.putShort(4, (short) message.ordinal());
    frame.putShort(6, (short) 0);
    frame.putLong(8, request);
    frame.putLong(16, frame.limit() - HEADER_BYTES);
    return frame;
  }

  static Header header(ByteBuffer data) {
    Reader in = new Reader(data);
    int magic = in.u32("a frame");
    int number = in.u16("a frame");
    int reserved = in.u16("a frame");
    long request = in.u64("a frame");
    long size = in.u64("a frame");
    if (magic != MAGIC) {
      throw Errors.wire("what the worker sent begins with " + Integer.toUnsignedString(magic)
          + ", wanted the magic number of a frame");
    }
    Message message = Message.of(number);
    if (message == null) {
      throw Errors.wire("the worker sent message " + number + ", which there is none of");
    }
    if (reserved != 0) {
      throw Errors.wire("bytes 6 and 7 of the worker's frame are " + reserved + ", wanted 0");
    }
    if (Long.compareUnsigned(size, Limits.BODY) > 0) {
      throw Errors.wire("the worker announced a body of " + Long.toUnsignedString(size)
          + " bytes, at most " + Limits.BODY + " are allowed");
    }
    return new Header(message, request, (int) size);
  }

  /** What the body of an ERROR says: its detail follows the message, on lines of its own. */
  static MSException error(Reader body) {
    int code = body.u32("an error's code");
    String kind = body.text("an error's kind");
    String message = body.text("an error's message");
    String detail = body.text("an error's detail");
    // an error is no success, whatever the other side says
    return new MSException(
        code == 0 ? -1 : code, kind, detail.isEmpty() ? message : message + "\n" + detail);
  }
}
