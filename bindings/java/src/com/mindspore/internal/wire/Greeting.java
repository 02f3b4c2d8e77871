package com.mindspore.internal.wire;

import com.mindspore.internal.Errors;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/** The first bytes on a connection: who speaks which version, for which session. */
final class Greeting {
  /** How long a worker that runs may take to answer. */
  static final long LIMIT_MS = 10_000;

  /** Opens a new session. */
  static final byte[] NO_TOKEN = new byte[16];

  private static final byte[] MAGIC = "MSLITE\r\n".getBytes(StandardCharsets.US_ASCII);
  private static final int VERSION = 2;
  private static final int WELCOME_BYTES = 36; // before its text
  private static final int MAX_TEXT = 4096;
  private static final int FULL = -6;

  private Greeting() {}

  /**
   * What a worker says of itself. Where further lanes connect to is the path that it was found by.
   *
   * @param token of the session
   */
  record Welcome(byte[] token, long pid) {}

  /** Says hello, and hears whether we are welcome; an MSException when not. */
  static Welcome greet(Connection connection, byte[] token, Deadline due) throws Lost {
    try {
      connection.send(hello(token), due);
    } catch (Lost refused) {
      // a worker that is full refuses before it reads, and its reason is there to be read
    }
    ByteBuffer told = ByteBuffer.allocate(WELCOME_BYTES + 4 + MAX_TEXT);
    fill(connection, told, WELCOME_BYTES + 4, due);
    fill(connection, told, WELCOME_BYTES + 4 + textSize(told), due);
    return welcome(told.flip());
  }

  static ByteBuffer hello(byte[] token) {
    ByteBuffer out = ByteBuffer.allocate(32).order(ByteOrder.LITTLE_ENDIAN);
    out.put(MAGIC).putShort((short) VERSION).putShort((short) VERSION).putInt(0).put(token);
    return out.flip();
  }

  /** Checked before as much is awaited. */
  private static int textSize(ByteBuffer told) {
    Reader in = new Reader(told.duplicate().flip());
    checkMagic(in);
    in.take(WELCOME_BYTES - MAGIC.length, "the greeting");
    int size = in.u32("the greeting");
    if (Integer.compareUnsigned(size, MAX_TEXT) > 0) {
      throw Errors.wire("the answer to the greeting announces a text of "
          + Integer.toUnsignedString(size) + " bytes, at most " + MAX_TEXT + " are allowed");
    }
    return size;
  }

  /** Reads all of the answer. */
  static Welcome welcome(ByteBuffer told) {
    Reader in = new Reader(told);
    checkMagic(in);
    int version = in.u16("the greeting");
    boolean isOdd = in.u16("the greeting") != 0;
    int code = in.u32("the greeting");
    byte[] token = new byte[NO_TOKEN.length];
    in.take(token.length, "the greeting").get(token);
    long pid = Integer.toUnsignedLong(in.u32("the greeting"));
    String text = in.text("the greeting", MAX_TEXT);
    if (isOdd) {
      throw Errors.wire("what answered the greeting is no worker of mslite");
    }
    if (version == 0) {
      String words = "the worker refused the connection: " + text;
      throw code == FULL ? Errors.resource(words) : Errors.wire(words);
    }
    if (version != VERSION) {
      throw Errors.wire("the worker chose version " + version
          + " of the protocol, this library speaks " + VERSION
          + "; install the same release of mslite on both sides");
    }
    return new Welcome(token, pid);
  }

  private static void checkMagic(Reader in) {
    byte[] magic = new byte[MAGIC.length];
    in.take(magic.length, "the greeting").get(magic);
    if (!Arrays.equals(magic, MAGIC)) {
      throw Errors.wire("what answered the greeting is no worker of mslite");
    }
  }

  private static void fill(Connection from, ByteBuffer to, int wanted, Deadline due) throws Lost {
    to.limit(wanted);
    while (to.hasRemaining()) {
      if (!from.awaitInput(due)) {
        throw new Lost("did not answer the greeting in time");
      }
      from.receive(to);
    }
  }
}
