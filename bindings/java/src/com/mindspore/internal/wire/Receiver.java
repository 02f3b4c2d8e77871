package com.mindspore.internal.wire;

import com.mindspore.internal.Errors;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/** What comes over a connection, frame by frame. */
final class Receiver {
  /** For which a message may stand still once it has begun. */
  static final long STALL_MS = 30_000;

  private static final int CHUNK = 1 << 15;
  private static final int LARGE = 1 << 18; // what is larger is not kept for the next frame

  private final Connection connection;
  private ByteBuffer data = allocated(CHUNK); // what came, up to the position

  Receiver(Connection connection) {
    this.connection = connection;
  }

  /** The next frame; waits for its beginning until then, and no longer than STALL_MS within it. */
  Frame.Header receive(Deadline due, Patience patience) throws Lost {
    if (data.position() == 0) {
      begin();
      while (connection.receive(data) == 0) {
        if (connection.awaitInput(due.orIn(Pulse.everyMs))) {
          continue;
        }
        if (due.isOver()) {
          throw due.passed();
        }
        patience.check();
      }
    }
    more(Frame.HEADER_BYTES, due);
    Frame.Header header = Frame.header(data.duplicate().flip());
    int whole = Frame.HEADER_BYTES + header.size();
    more(whole, due);
    if (data.position() > whole) {
      throw Errors.wire(
          "the worker sent " + (data.position() - whole) + " bytes more than its answer has");
    }
    return header;
  }

  /** The body of the frame, valid until the next one is awaited. */
  Reader body() {
    return new Reader(data.duplicate().flip().position(Frame.HEADER_BYTES));
  }

  /**
   * Stays awake for so long in case that a frame begins; receive() has it then. A processor that
   * sleeps takes longer to wake than a small answer to come.
   */
  void look(long limitNs) throws Lost {
    begin();
    long start = System.nanoTime();
    while (connection.receive(data) == 0 && System.nanoTime() - start < limitNs) {
      Thread.yield(); // the other side may need this very processor
    }
  }

  /** The frame before is read: another one may come. */
  void forget() {
    data.position(0);
  }

  private void begin() {
    if (data.capacity() > LARGE) {
      Unmapping.free(data);
      data = allocated(CHUNK);
    }
    data.clear();
  }

  private void more(int wanted, Deadline due) throws Lost {
    while (data.position() < wanted) {
      if (!data.hasRemaining()) {
        // by what came, not by what was announced: words alone must not cost memory
        ByteBuffer before = data;
        data = allocated((int) Math.min(wanted, 2L * before.capacity()));
        data.put(before.flip());
        Unmapping.free(before);
      }
      if (connection.receive(data) == 0 && !connection.awaitInput(due.orIn(STALL_MS))) {
        if (due.isOver()) {
          throw due.passed();
        }
        throw new Lost("stopped within an answer");
      }
    }
  }

  private static ByteBuffer allocated(int size) {
    return ByteBuffer.allocateDirect(size).order(ByteOrder.LITTLE_ENDIAN);
  }
}
