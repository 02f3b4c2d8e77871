package com.mindspore.internal.wire;

import com.mindspore.MSException;
import com.mindspore.internal.Errors;
import java.io.IOException;
import java.net.ConnectException;
import java.net.SocketException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * A connected socket, for one thread at a time.
 *
 * <p>The channel does not block: one that does is closed by Thread.interrupt(), and has no limits
 * of time. Who has to wait does so in a selector, which an interrupt only wakes.
 */
final class Connection implements AutoCloseable {
  private static final int FULL_MS = 5; // between tries where too many others wait to be taken

  private final SocketChannel channel;
  private final Selector selector;
  private final SelectionKey key;

  private Connection(SocketChannel channel) throws IOException {
    this.channel = channel;
    selector = Selector.open();
    try {
      key = channel.register(selector, SelectionKey.OP_READ);
    } catch (IOException | RuntimeException error) {
      selector.close();
      throw error;
    }
  }

  /** Connects; Lost when nobody takes the connection, a ResourceError when no socket can be had. */
  static Connection to(Path path, Deadline due) throws Lost {
    for (;;) {
      SocketChannel channel = opened();
      try {
        if (isConnected(channel, path, due)) {
          return new Connection(channel);
        }
      } catch (IOException error) {
        closed(channel);
        throw noSocket(error);
      } catch (Lost error) {
        closed(channel);
        throw error;
      }
      closed(channel);
      Interrupts.sleep(FULL_MS);
    }
  }

  private static SocketChannel opened() {
    try {
      return SocketChannel.open(StandardProtocolFamily.UNIX);
    } catch (IOException error) {
      throw noSocket(error);
    }
  }

  /** False where too many wait to be taken already, and there is still time to try again. */
  private static boolean isConnected(SocketChannel channel, Path path, Deadline due)
      throws IOException, Lost {
    channel.configureBlocking(false);
    SocketException why = null; // connect() may also just return false then
    try {
      if (channel.connect(UnixDomainSocketAddress.of(path))) {
        return true;
      }
    } catch (SocketException error) {
      why = error;
    }
    // Java has no name for EAGAIN: it is what is not refused, though the file is there for us
    boolean isFull = !(why instanceof ConnectException) && Files.isWritable(path);
    if (isFull && !due.isOver()) {
      return false;
    }
    throw new Lost("does not take the connection: "
        + (why == null ? "too many others wait" : why.getMessage()));
  }

  /** Sends all bytes from position to limit; false when the time is over. */
  boolean send(ByteBuffer data, Deadline due) throws Lost {
    try {
      channel.write(data);
      while (data.hasRemaining()) {
        if (!isReady(SelectionKey.OP_WRITE, due)) {
          return false;
        }
        channel.write(data);
      }
      return true;
    } catch (IOException error) {
      throw new Lost("broke the connection", error);
    }
  }

  /** Reads what is there, into what is left of the buffer; how much, 0 when nothing is. */
  int receive(ByteBuffer to) throws Lost {
    int got;
    try {
      got = channel.read(to);
    } catch (IOException error) {
      throw new Lost("broke the connection", error);
    }
    if (got < 0) {
      throw new Lost("closed the connection");
    }
    return got;
  }

  /** Waits until something can be read, or the end is there; false when the time is over. */
  boolean awaitInput(Deadline due) throws Lost {
    try {
      return isReady(SelectionKey.OP_READ, due);
    } catch (IOException error) {
      throw new Lost("cannot be waited for", error);
    }
  }

  private boolean isReady(int operation, Deadline due) throws IOException {
    if (key.interestOps() != operation) {
      key.interestOps(operation);
    }
    for (;;) {
      long leftMs = due.leftMs();
      int ready = Interrupts.putOff(() -> leftMs == 0 ? selector.selectNow() : selected(leftMs));
      selector.selectedKeys().clear();
      if (ready > 0 || leftMs == 0) {
        return ready > 0;
      }
    }
  }

  private int selected(long leftMs) throws IOException {
    return selector.select(leftMs == Long.MAX_VALUE ? 0 : leftMs);
  }

  @Override
  public void close() {
    closed(channel); // first: the selector's end then lets go of the descriptor
    try {
      selector.close();
    } catch (IOException error) {
      // nothing is left to be done
    }
  }

  private static void closed(SocketChannel channel) {
    try {
      channel.close();
    } catch (IOException error) {
      // nothing is left to be done
    }
  }

  private static MSException noSocket(IOException error) {
    return Errors.resource("no socket can be had: " + error.getMessage()
        + "; close files, or allow more of them (ulimit -n)");
  }
}
