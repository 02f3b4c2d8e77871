package com.mindspore.internal.wire;

import com.mindspore.MSException;
import com.mindspore.internal.Errors;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.AccessDeniedException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * Memory that this process and its worker share.
 *
 * <p>The worker makes a block and sends its number; this side maps it. It is good for requests
 * until it is freed there, or until the lane closes over which it was made: then the mapping stays
 * valid, but the worker does not know the block any more, and what is in it must be copied.
 */
final class Block {
  private final int number;
  private Mapping mapping; // null when it is unmapped: better an exception than the process's end
  private final int size;
  private final AtomicBoolean life; // of its lane
  private volatile boolean isCondemned;
  private volatile boolean isViewed;

  Block(int number, Mapping mapping, AtomicBoolean life) {
    this.number = number;
    this.mapping = mapping;
    size = mapping.data().capacity();
    this.life = life;
    Mapped.ALL.add(size);
  }

  /** Maps what a worker made. */
  static Block opened(long pid, Made made, AtomicBoolean life) {
    if (made.block() == 0 || made.size() <= 0) {
      throw Errors.wire("the worker told of block " + Integer.toUnsignedString(made.block())
          + " of " + Long.toUnsignedString(made.size()) + " bytes, which cannot be");
    }
    if (made.size() > Limits.BLOCK) {
      throw Errors.resource("the outputs lie in " + made.size()
          + " bytes of shared memory, at most " + Limits.BLOCK
          + " can be used from Java; send smaller requests");
    }
    Path path = Path.of("/proc/" + pid + "/fd/" + Integer.toUnsignedString(made.descriptor()));
    try {
      // what is mapped is lost where the thread that does so is interrupted meanwhile
      return new Block(made.block(), Undisturbed.done(() -> mapped(path, made.size())), life);
    } catch (IOException | SecurityException error) {
      throw unusable(error);
    }
  }

  private static Mapping mapped(Path path, long size) throws IOException {
    // before it is opened: the worker may have ended, and its process id be another's by now
    if (!Files.readSymbolicLink(path).toString().startsWith("/memfd:")) {
      throw notMeant();
    }
    try (FileChannel file =
             FileChannel.open(path, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
      if (file.size() != size) {
        throw notMeant();
      }
      return Mapping.of(file, size);
    }
  }

  private static MSException notMeant() {
    return Errors.wire("what the worker shared is not the memory that it told of");
  }

  private static MSException unusable(Exception error) {
    String remedy = "free memory or files (ulimit -n), send smaller requests, or fewer at once";
    if (error instanceof NoSuchFileException) {
      remedy = "the worker has ended, or runs in another container";
    } else if (error instanceof AccessDeniedException) {
      remedy = "the worker must run as the same user";
    }
    return Errors.resource(
        "shared memory of the worker cannot be mapped: " + error + "; " + remedy);
  }

  int number() {
    return number;
  }

  int size() {
    return size;
  }

  /** A part of it, little-endian; only the holder of the block may touch it. */
  ByteBuffer part(int offset, int size) {
    return mapping.data().slice(offset, size).order(ByteOrder.LITTLE_ENDIAN);
  }

  /** Whether the worker still knows it. */
  boolean isKnown() {
    return life.get();
  }

  /** Nobody else should have it: a request that may still use it has failed. */
  void condemn() {
    isCondemned = true;
  }

  /** A user has a view of it, which stays valid: it is never used again, nor unmapped by us. */
  void expose() {
    isViewed = true;
  }

  /** Whether it may be handed out again. */
  boolean isReusable() {
    return !isCondemned && !isViewed && isKnown();
  }

  /** Nobody has it any more. */
  void unmap() {
    int bytes = size; // what is left to the collector must not refer to this
    if (isViewed || !mapping.unmap()) {
      mapping.leave(() -> Mapped.ALL.remove(bytes));
    } else {
      Mapped.ALL.remove(bytes);
    }
    mapping = null;
  }
}
