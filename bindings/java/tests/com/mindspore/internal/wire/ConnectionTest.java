package com.mindspore.internal.wire;

import com.mindspore.check.Check;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** A socket that does not block. */
public final class ConnectionTest {
  private ConnectionTest() {}

  /** The kernel has room for some that wait, and then refuses for a while. */
  public static void whoCannotBeTakenYetTriesAgain() throws Exception {
    Path folder = Files.createTempDirectory("mslite-full");
    Path path = folder.resolve("s");
    List<Connection> made = new ArrayList<>();
    try (ServerSocketChannel listener = ServerSocketChannel.open(StandardProtocolFamily.UNIX)) {
      listener.bind(UnixDomainSocketAddress.of(path), 1);
      String refused = "";
      while (refused.isEmpty() && made.size() < 100) {
        try {
          made.add(Connection.to(path, Deadline.in(1)));
        } catch (Lost lost) {
          refused = lost.getMessage();
        }
      }
      Check.contains(refused, "does not take the connection");
      int waiting = made.size();
      Check.threads(2, i -> {
        if (i == 0) {
          synchronized (made) {
            made.add(Connection.to(path, Deadline.in(60_000)));
          }
        } else {
          for (int taken = 0; taken <= waiting; ++taken) {
            listener.accept().close();
          }
        }
      });
      Check.equal(waiting + 1, made.size());
    } finally {
      made.forEach(Connection::close);
      Files.delete(path);
      Files.delete(folder);
    }
  }

  public static void theEndOfTheOtherSideIsSeenAndWaitingHasALimit() throws Exception {
    try (Ends ends = new Ends(new byte[0], false)) {
      Check.that(!ends.ours.awaitInput(Deadline.in(5)), "there is something");
      Check.equal(0, ends.ours.receive(ByteBuffer.allocate(1)));
      ByteBuffer more = ByteBuffer.allocateDirect(4 << 20); // than the kernel keeps
      Check.that(!ends.ours.send(more, Deadline.in(5)), "all was sent");
    }
    try (Ends ends = new Ends(new byte[1], true)) {
      Check.that(ends.ours.awaitInput(Deadline.NEVER), "there is nothing");
      Check.equal(1, ends.ours.receive(ByteBuffer.allocate(9)));
      Check.equal("closed the connection", ends.lost());
    }
  }
}
