package com.mindspore.internal.wire;

import com.mindspore.MSException;
import com.mindspore.internal.Errors;
import java.nio.ByteBuffer;
import java.util.concurrent.atomic.AtomicBoolean;

/** One connection of a session, for one request at a time. */
final class Lane implements AutoCloseable {
  private static final long QUICK_NS = 200_000; // an answer that takes no longer is awaited awake

  private final Connection connection;
  private final Writer out = new Writer(Frame.HEADER_BYTES);
  private final Receiver in;
  private final Patience patience;
  private final AtomicBoolean life = new AtomicBoolean(true);
  private boolean isFree = true;
  private long tookNs = Long.MAX_VALUE; // for the last answer to come

  /** Takes a connection on which both sides have greeted; who waits on it asks for patience. */
  Lane(Connection connection, Patience patience) {
    this.connection = connection;
    this.patience = patience;
    in = new Receiver(connection);
  }

  /** Where the body of the next request is written to; empty. */
  Writer begin() {
    out.clear();
    return out;
  }

  /**
   * Sends it and waits for the answer, whose body is valid until the next begin(). Throws what the
   * worker answered with, after which the lane is free again. After anything else that it throws,
   * the lane is of no more use.
   */
  Reader ask(Message message, long request, Deadline due, boolean staysAwake) throws Lost {
    ByteBuffer frame = Frame.headed(out.written(), message, request);
    isFree = false;
    if (!connection.send(frame, due.orIn(Receiver.STALL_MS))) {
      if (due.isOver()) {
        throw due.passed();
      }
      throw new Lost("does not read what is sent to it");
    }
    in.forget();
    long start = System.nanoTime();
    if (staysAwake && tookNs < QUICK_NS) {
      in.look(2 * tookNs);
    }
    Frame.Header header = in.receive(due, patience);
    tookNs = System.nanoTime() - start;
    return checked(message, request, header);
  }

  private Reader checked(Message asked, long request, Frame.Header header) {
    Reader body = in.body();
    if (header.request() != request) {
      if (header.request() == 0 && header.message() == Message.ERROR) {
        throw Frame.error(body); // its last words on this connection
      }
      throw Errors.wire("the worker answered request " + Long.toUnsignedString(header.request())
          + ", wanted the answer to " + request);
    }
    if (header.message() == Message.ERROR) {
      MSException told = Frame.error(body);
      isFree = true;
      throw told;
    }
    Message wanted = asked == Message.BUILD ? Message.BUILD_FINISH : Message.REPLY;
    if (header.message() != wanted) {
      throw Errors.wire("the worker answered request " + request + " with " + header.message()
          + ", wanted " + wanted);
    }
    return body;
  }

  /** The answer made sense: the lane is free again. */
  void accept() {
    isFree = true;
  }

  boolean isFree() {
    return isFree;
  }

  /** True until the lane closes, and with it ends what the worker made over it. */
  AtomicBoolean life() {
    return life;
  }

  @Override
  public void close() {
    life.set(false);
    connection.close();
  }
}
