package com.mindspore.internal.wire;

import com.mindspore.MSException;
import com.mindspore.internal.Errors;
import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.attribute.UserPrincipal;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantLock;

/** The connection with a worker: who it is, whether it lives, and how further lanes are opened. */
final class Link implements AutoCloseable {
  private static final long GONE_MS = 2000; // between the first and the last sign of its end
  private static final long CLOSES_MS = 100; // until the last of its files is closed

  final Path path;
  private final Connection keeper; // carries nothing: each side sees by its end that the other went
  private final Greeting.Welcome welcome;
  private final WorkerProcess process; // null where the worker is no child of ours
  private final AtomicLong lastRequest = new AtomicLong();
  private final Pulse pulse;
  private final ReentrantLock asking = new ReentrantLock(); // held while the worker is asked
  private Lane askLane; // under that lock
  private volatile long silentMs; // for which it was silent when it was given up
  private volatile boolean isOver;

  private Link(Path path, Connection keeper, Greeting.Welcome welcome, WorkerProcess process) {
    this.path = path;
    this.keeper = keeper;
    this.welcome = welcome;
    this.process = process;
    pulse = new Pulse(welcome.pid());
  }

  /** Starts a worker. */
  static Link started() {
    WorkerProcess process = WorkerProcess.started(WorkerCommand.found());
    try {
      return opened(process.socket(), process);
    } catch (Lost lost) {
      throw process.unusable(lost);
    } catch (MSException error) {
      process.end();
      throw new MSException(error.code(), error.kind(),
          "the worker that was started by '" + process.command()
              + "' cannot be used: " + error.getMessage());
    } catch (RuntimeException | Error error) {
      process.end();
      throw error;
    }
  }

  /** The session at a worker that listens on a path. */
  static Link attached(String name) {
    try {
      Path path = Path.of(name);
      checkOwner(path);
      return opened(path, null);
    } catch (Lost | InvalidPathException error) {
      throw Errors.unavailable("mslite.socket or MSLITE_SOCKET is '" + name
          + "', but the worker there "
          + (error instanceof Lost ? "" : "has a name that Java cannot write: ")
          + error.getMessage() + "; start one by 'mslite worker --socket " + name
          + " --stay', or unset it");
    }
  }

  /** A worker serves its own user alone, and this program's data is not for another one's. */
  private static void checkOwner(Path path) throws Lost {
    try {
      UserPrincipal owner = Files.getOwner(path);
      if (!owner.equals(Files.getOwner(Path.of("/proc/self")))) {
        throw new Lost("is another user's, " + owner.getName());
      }
    } catch (NoSuchFileException error) {
      throw new Lost("does not exist");
    } catch (IOException error) {
      throw new Lost("cannot be looked at", error);
    }
  }

  static Link opened(Path path, WorkerProcess process) throws Lost {
    Met met = met(path, Greeting.NO_TOKEN, Deadline.in(Greeting.LIMIT_MS));
    return new Link(path, met.connection(), met.welcome(), process);
  }

  private record Met(Connection connection, Greeting.Welcome welcome) {}

  private static Met met(Path path, byte[] token, Deadline due) throws Lost {
    Connection connection = Connection.to(path, due);
    try {
      return new Met(connection, Greeting.greet(connection, token, due));
    } catch (Lost | RuntimeException | Error refused) {
      connection.close();
      throw refused;
    }
  }

  long pid() {
    return welcome.pid();
  }

  long nextRequest() {
    return lastRequest.incrementAndGet();
  }

  /** False as soon as the worker has ended, whichever thread noticed. */
  boolean isAlive() {
    return !isOver(0);
  }

  Lane openLane(Deadline due) {
    if (isOver) {
      throw death();
    }
    try {
      return opened(due.orIn(Greeting.LIMIT_MS), this::check);
    } catch (Lost lost) {
      throw due.isOver() && isAlive() ? due.passed() : explained(lost);
    } catch (MSException error) {
      // it took us once: so it is ending, or gone and another one is there
      throw error.kind().equals("WireError") && isOver(0) ? death() : error;
    }
  }

  private Lane opened(Deadline due, Patience patience) throws Lost {
    Connection connection = met(path, welcome.token(), due).connection();
    try {
      return new Lane(connection, patience);
    } catch (OutOfMemoryError error) { // of direct memory, where it is limited
      connection.close();
      throw error;
    }
  }

  Block openBlock(Made made, AtomicBoolean life) {
    try {
      return Block.opened(pid(), made, life);
    } catch (MSException error) {
      // one that ends lets go of its files, and then closes them
      throw isOver(hasFiles() ? 0 : CLOSES_MS) ? death() : error;
    }
  }

  private boolean hasFiles() {
    String[] names = new File("/proc/" + pid() + "/fd").list();
    return names != null && names.length > 0;
  }

  /** The error for a user who got no answer. */
  MSException explained(Lost lost) {
    if (isOver(GONE_MS)) {
      return death();
    }
    return Errors.wire("the worker process " + pid() + " " + lost.getMessage()
        + ", though it still runs; try again, or end it");
  }

  /** The first connection ends with the worker, however that ends. */
  private boolean isOver(long limitMs) {
    if (!isOver) {
      synchronized (keeper) {
        isOver = isOver || hasEnded(limitMs);
      }
    }
    return isOver;
  }

  private boolean hasEnded(long limitMs) {
    ByteBuffer nothing = ByteBuffer.allocate(1);
    try {
      // nothing is ever said over it: if there is something, it is the end
      return keeper.receive(nothing) > 0
          || (limitMs > 0 && keeper.awaitInput(Deadline.in(limitMs)));
    } catch (Lost end) {
      return true;
    }
  }

  /**
   * Asks the worker over a lane of its own whether it is there, unless another thread does. One
   * that has not answered for long, and did not compute either, is given up: throws its death.
   */
  private void check() {
    if (!asking.tryLock()) {
      return;
    }
    try {
      if (isOver) {
        throw death();
      }
      pulse.begin();
      if (answers()) {
        pulse.heard();
        return;
      }
      long silent = pulse.silentMs();
      if (silent >= Pulse.silentMs) {
        giveUp(silent);
        throw death();
      }
    } finally {
      asking.unlock();
    }
  }

  /** True also where it cannot be asked, which says nothing about it. The lock is held. */
  private boolean answers() {
    Deadline due = Deadline.in(Pulse.askMs);
    try {
      if (askLane == null) {
        askLane = opened(due, Patience.ENDLESS);
      }
      Writer out = askLane.begin();
      out.u32(0);
      out.text("pid");
      askLane.ask(Message.INFO, nextRequest(), due, false);
      askLane.accept();
      return true;
    } catch (Lost lost) {
      dropAskLane();
      return false;
    } catch (MSException error) {
      dropAskLane();
      return !error.kind().equals("RequestTimeoutError");
    }
  }

  private void dropAskLane() {
    if (askLane != null) {
      askLane.close();
      askLane = null;
    }
  }

  private void giveUp(long silent) {
    silentMs = Math.max(1, silent);
    isOver = true;
    if (process != null) {
      process.kill(); // which ends one that is stopped, too
    }
  }

  private MSException death() {
    if (silentMs > 0) {
      return Errors.died("the worker process " + pid() + " did not answer for " + silentMs / 1000
          + " s, nor did it compute, and was given up; build the model again");
    }
    String ending = process == null ? "" : process.ending(GONE_MS);
    return Errors.died("the worker process " + pid() + " is gone"
        + (ending.isEmpty() ? "" : " (" + ending + ")")
        + ", and with it what was built there; build the model again");
  }

  /** Lets go of a worker that has ended, or ends it. */
  @Override
  public void close() {
    synchronized (keeper) {
      isOver = true;
      keeper.close();
    }
    asking.lock();
    try {
      dropAskLane();
    } finally {
      asking.unlock();
    }
  }
}
