package com.mindspore.internal.wire;

import com.mindspore.MSException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.BooleanSupplier;

/**
 * Blocks that are not in use now are kept for later: making one takes time for every page.
 *
 * <p>Blocks are handed out, and come back when the last one who has them lets go, from whatever
 * thread. The least recently used ones are freed when many are idle.
 */
final class Pool {
  static final int MAX_BLOCKS = 4096; // of a session, at the worker
  static final int IDLE_BLOCKS = 8; // that are kept, whatever their size
  static final long IDLE_BYTES = 64 << 20; // that are kept, however many blocks

  private static final long SMALLEST = 1 << 16;

  private final Object session;
  private final BlockSource source;
  private final BooleanSupplier isInUse;
  private final ReentrantLock sourceLock = new ReentrantLock();

  // the others are guarded by this object's lock
  private final List<Block> idle = new ArrayList<>(); // the most recently used one last
  private long idleBytes;
  private int count; // of blocks that the worker has for us
  private List<Integer> pending = new ArrayList<>(); // numbers to be freed there

  /**
   * The blocks of a session.
   *
   * @param isInUse whether there are models: else what comes back is not kept. When it becomes
   *     false, dropIdle() follows.
   */
  Pool(Object session, BlockSource source, BooleanSupplier isInUse) {
    this.session = session;
    this.source = source;
    this.isInUse = isInUse;
  }

  boolean isOf(Object other) {
    return session == other;
  }

  /** The size to ask for: not outgrown at once, and an eighth more at most if it is large. */
  static long rounded(long size) {
    long step = SMALLEST;
    while (step * 16 <= size) {
      step *= 2;
    }
    return Math.min((size + step - 1) / step * step, Limits.BLOCK);
  }

  /** A block of at least this size, with anything in it; null when there is no room for one. */
  Share take(long size, Deadline due) {
    if (size > Limits.BLOCK) {
      return null;
    }
    Block block = takeIdle(size);
    return shared(block != null ? block : make(rounded(size), due));
  }

  /** The same, but new, and freed when it comes back: for what is large and seldom. */
  Share takeOnce(long size, Deadline due) {
    if (size > Limits.BLOCK) {
      return null;
    }
    Block block = make(size, due);
    if (block != null) {
      block.condemn();
    }
    return shared(block);
  }

  /** One that the worker made for an answer, which is ours from now on. */
  Share adopt(Block block) {
    synchronized (this) {
      ++count;
    }
    return shared(block);
  }

  /** One that the worker made and nobody here could open. */
  void disown(int number) {
    synchronized (this) {
      pending.add(number);
    }
    freePending();
  }

  /** One that was handed out, and that nobody has any more. */
  void takeBack(Block block) {
    List<Block> gone = new ArrayList<>();
    synchronized (this) {
      if (block.isReusable() && isInUse.getAsBoolean()) {
        idleBytes += block.size();
        idle.add(block);
      } else {
        retire(block, gone);
      }
      while (idle.size() > IDLE_BLOCKS && idleBytes > IDLE_BYTES) {
        Block oldest = idle.remove(0);
        idleBytes -= oldest.size();
        retire(oldest, gone);
      }
    }
    gone.forEach(Block::unmap);
    freePending();
  }

  /** Frees all that nobody uses. */
  void dropIdle() {
    List<Block> gone = new ArrayList<>();
    synchronized (this) {
      idle.forEach(block -> retire(block, gone));
      idle.clear();
      idleBytes = 0;
    }
    gone.forEach(Block::unmap);
    freePending();
  }

  /** The worker is gone. Blocks may still come back. */
  void close() {
    sourceLock.lock();
    try {
      source.close();
    } finally {
      sourceLock.unlock();
    }
    dropIdle();
  }

  synchronized int idle() {
    return idle.size();
  }

  private Share shared(Block block) {
    return block == null ? null : new Share(this, block);
  }

  /** The smallest that fits and is not more than twice as large as a new one would be. */
  private synchronized Block takeIdle(long size) {
    long most = 2 * rounded(size);
    int best = -1;
    for (int i = 0; i < idle.size(); ++i) {
      Block block = idle.get(i);
      boolean fits = block.size() >= size && block.size() <= most && block.isReusable();
      if (fits && (best < 0 || block.size() < idle.get(best).size())) {
        best = i;
      }
    }
    if (best < 0) {
      return null;
    }
    Block found = idle.remove(best);
    idleBytes -= found.size();
    return found;
  }

  private Block make(long size, Deadline due) {
    if (!reserved()) {
      dropIdle();
      if (!reserved()) {
        return null;
      }
    }
    Block made = null;
    try {
      made = madeAtWorker(size, due);
      if (made == null && idle() > 0) {
        dropIdle(); // what is kept for later is in the way now
        made = madeAtWorker(size, due);
      }
      return made;
    } finally {
      if (made == null) {
        synchronized (this) {
          --count;
        }
      }
    }
  }

  private synchronized boolean reserved() {
    if (count >= MAX_BLOCKS) {
      return false;
    }
    ++count;
    return true;
  }

  /** Null when there is no room for it. */
  private Block madeAtWorker(long size, Deadline due) {
    Block made = null;
    if (!Interrupts.putOff(() -> sourceLock.tryLock(due.leftMs(), TimeUnit.MILLISECONDS))) {
      throw due.passed();
    }
    try {
      made = source.make(size, due);
    } catch (MSException error) {
      if (!error.kind().equals("ResourceError")) {
        throw error;
      }
    } finally {
      sourceLock.unlock();
    }
    freePending(); // others may have had to leave some while the source was in use
    return made;
  }

  /** The lock is held. */
  private void retire(Block block, List<Block> gone) {
    --count;
    if (block.isKnown()) {
      pending.add(block.number());
    }
    gone.add(block);
  }

  /** Whoever has the source frees for all others, so that nobody has to wait for it. */
  private void freePending() {
    while (hasPending() && sourceLock.tryLock()) {
      try {
        List<Integer> numbers = takePending();
        if (!numbers.isEmpty()) {
          source.free(numbers);
        }
      } catch (MSException gone) {
        // the worker is, or the lane, and the blocks with it
      } finally {
        sourceLock.unlock();
      }
    }
  }

  private synchronized boolean hasPending() {
    return !pending.isEmpty();
  }

  private synchronized List<Integer> takePending() {
    List<Integer> numbers = pending;
    pending = new ArrayList<>();
    return numbers;
  }
}
