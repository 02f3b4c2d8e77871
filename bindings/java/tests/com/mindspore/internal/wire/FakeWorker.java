package com.mindspore.internal.wire;

import java.io.IOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;

/** A worker that says what a test has it say. */
final class FakeWorker implements AutoCloseable {
  /** What it does with a request: the bytes to send; none at all close the connection. */
  @FunctionalInterface
  interface Answer {
    byte[] to(Frame.Header header, Reader body);
  }

  private final Answer answer;
  private final long pid;
  private final Path folder;
  private final ServerSocketChannel listener;
  private final AtomicInteger connections = new AtomicInteger();
  private volatile SocketChannel keeper;
  private final Session session;

  FakeWorker(Answer answer) throws Exception {
    this(ProcessHandle.current().pid(), answer);
  }

  /** One that has its memory in that process. */
  FakeWorker(long pid, Answer answer) throws Exception {
    this.pid = pid;
    this.answer = answer;
    folder = Files.createTempDirectory("mslite-fake");
    Path path = folder.resolve("s");
    listener = ServerSocketChannel.open(StandardProtocolFamily.UNIX);
    listener.bind(UnixDomainSocketAddress.of(path));
    start(this::accept);
    session = new Session(Link.opened(path, null));
  }

  /** The one session at it. */
  Session session() {
    return session;
  }

  int lanes() {
    return connections.get() - 1;
  }

  /** Ends the first connection, as the end of the process does. */
  void die() {
    try {
      keeper.close();
    } catch (IOException error) {
      throw new IllegalStateException(error);
    }
  }

  @Override
  public void close() throws IOException {
    session.end(); // its lanes close, and the threads end
    listener.close();
    Files.deleteIfExists(folder.resolve("s"));
    Files.delete(folder);
  }

  /** A whole frame. */
  static byte[] frame(Message message, long request, Consumer<Writer> write) {
    Writer out = new Writer(Frame.HEADER_BYTES);
    write.accept(out);
    ByteBuffer frame = Frame.headed(out.written(), message, request);
    byte[] bytes = new byte[frame.remaining()];
    frame.get(bytes);
    return bytes;
  }

  static byte[] reply(Frame.Header header, Consumer<Writer> write) {
    return frame(Message.REPLY, header.request(), write);
  }

  static byte[] told(Frame.Header header, String text) {
    return reply(header, out -> out.text(text));
  }

  private static void start(Runnable body) {
    Thread thread = new Thread(body, "test-fake-worker");
    thread.setDaemon(true);
    thread.start();
  }

  private void accept() {
    try {
      for (;;) {
        SocketChannel made = listener.accept();
        if (connections.getAndIncrement() == 0) {
          keeper = made;
        }
        start(() -> serve(made));
      }
    } catch (IOException end) {
      // of the test
    }
  }

  private void serve(SocketChannel lane) {
    try (lane) {
      ByteBuffer hello = filled(lane, 32);
      ByteBuffer welcome = ByteBuffer.allocate(40).order(ByteOrder.LITTLE_ENDIAN);
      welcome.put("MSLITE\r\n".getBytes(StandardCharsets.US_ASCII));
      welcome.putShort((short) 2).putShort((short) 0).putInt(0).put(hello.position(16));
      send(lane, welcome.putInt((int) pid).putInt(0).flip());
      for (;;) {
        Frame.Header header = Frame.header(filled(lane, Frame.HEADER_BYTES));
        byte[] bytes = answer.to(header, new Reader(filled(lane, header.size())));
        if (bytes.length == 0) {
          return;
        }
        send(lane, ByteBuffer.wrap(bytes));
      }
    } catch (IOException end) {
      // the client left
    }
  }

  private static void send(SocketChannel lane, ByteBuffer bytes) throws IOException {
    while (bytes.hasRemaining()) {
      lane.write(bytes);
    }
  }

  private static ByteBuffer filled(SocketChannel lane, int size) throws IOException {
    ByteBuffer bytes = ByteBuffer.allocate(size);
    while (bytes.hasRemaining()) {
      if (lane.read(bytes) < 0) {
        throw new IOException("the end");
      }
    }
    return bytes.flip();
  }
}
