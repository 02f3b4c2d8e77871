package com.mindspore.internal.wire;

import java.io.IOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;

/** Both ends of a connection: the worker's has said something, and may have closed it then. */
final class Ends implements AutoCloseable {
  private static final long LIMIT_MS = 10_000;

  final Connection ours;
  private final SocketChannel theirs;

  Ends(byte[] said, boolean isClosed) throws IOException, Lost {
    Path folder = Files.createTempDirectory("mslite-ends");
    Path path = folder.resolve("s");
    try (ServerSocketChannel listener = ServerSocketChannel.open(StandardProtocolFamily.UNIX)) {
      listener.bind(UnixDomainSocketAddress.of(path));
      ours = Connection.to(path, Deadline.in(LIMIT_MS));
      theirs = listener.accept();
    } finally {
      Files.deleteIfExists(path);
      Files.delete(folder);
    }
    theirs.write(ByteBuffer.wrap(said));
    if (isClosed) {
      theirs.close();
    }
  }

  /** Throws what the greeting throws; how the connection was lost is an exception, too. */
  void greet() {
    try {
      Greeting.greet(ours, Greeting.NO_TOKEN, Deadline.in(LIMIT_MS));
    } catch (Lost lost) {
      throw new IllegalStateException(lost);
    }
  }

  /** How a frame was lost; empty when it was not. */
  String lost() {
    try {
      new Receiver(ours).receive(Deadline.in(LIMIT_MS), Patience.ENDLESS);
      return "";
    } catch (Lost lost) {
      return lost.getMessage();
    }
  }

  @Override
  public void close() throws IOException {
    theirs.close();
    ours.close();
  }
}
