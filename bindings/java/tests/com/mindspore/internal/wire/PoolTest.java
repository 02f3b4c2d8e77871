package com.mindspore.internal.wire;

import com.mindspore.check.Check;
import com.mindspore.internal.Errors;
import com.mindspore.internal.Memory;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;

/** Which blocks are made, kept and freed. */
public final class PoolTest {
  private static final int MIB = 1 << 20;

  private PoolTest() {}

  /** What the "worker" has. */
  private static final class Books implements BlockSource {
    final List<Long> made = new ArrayList<>(); // sizes
    final List<Integer> freed = new ArrayList<>(); // numbers
    final Pool pool = new Pool(this, this);
    boolean isFull;
    AtomicBoolean life = new AtomicBoolean(true);

    Books() {
      pool.addModel();
    }

    @Override
    public Block make(long size, Deadline due) {
      if (isFull) {
        throw Errors.resource("it is full");
      }
      made.add(size);
      return new Block(made.size(), new Mapping(ByteBuffer.allocate((int) size)), life);
    }

    @Override
    public void free(List<Integer> numbers) {
      freed.addAll(numbers);
    }

    @Override
    public void close() {
      life.set(false);
    }

    Share take(long size) {
      return pool.take(size, Deadline.NEVER);
    }

    /** Takes one and gives it back at once; its number. */
    int used(long size) {
      Share share = take(size);
      share.leave();
      return share.block().number();
    }
  }

  public static void sizesAreRoundedSoThatTheyAreNotOutgrownAtOnce() {
    Check.equal(1L << 16, Pool.rounded(1));
    Check.equal(1L << 16, Pool.rounded(1 << 16));
    Check.equal(2L << 16, Pool.rounded((1 << 16) + 1));
    Check.equal(9L * MIB, Pool.rounded(8 * MIB + 1));
    Check.equal((long) Limits.BLOCK, Pool.rounded(Limits.BLOCK));
  }

  public static void aBlockThatCameBackIsHandedOutAgain() {
    Books books = new Books();
    int number = books.used(100);
    Check.equal(1, books.pool.idle());
    Check.equal(number, books.used(60000));
    Check.equal(1, books.made.size());
  }

  public static void theSmallestBlockThatFitsIsTakenUnlessItIsTooLarge() {
    Books books = new Books();
    List<Share> all = List.of(books.take(1600 << 10), books.take(MIB), books.take(1 << 16));
    all.forEach(Share::leave);
    Check.equal(MIB, books.take(900 << 10).block().size());
    Check.equal(1 << 16, books.take(1 << 10).block().size());
    Check.equal(3, books.made.size());
    books.take(300 << 10); // 1 MiB would be more than twice as much
    Check.equal(4, books.made.size());
  }

  public static void theLeastRecentlyUsedGoWhenManyAndMuchAreIdle() {
    Books books = new Books();
    List<Share> few = new ArrayList<>();
    for (int i = 0; i < 8; ++i) {
      few.add(books.take(16 * MIB));
    }
    few.forEach(Share::leave);
    Check.equal(8, books.pool.idle()); // 128 MiB, but no more than eight
    Check.equal(List.of(), books.freed);
    int last = books.used(100);
    Check.equal(8, books.pool.idle());
    Check.equal(1, books.freed.size());
    Check.that(books.freed.get(0) != last, "the most recently used one went");
  }

  public static void manySmallBlocksAreKept() {
    Books books = new Books();
    List<Share> many = new ArrayList<>();
    for (int i = 0; i < 100; ++i) {
      many.add(books.take(100));
    }
    many.forEach(Share::leave);
    Check.equal(100, books.pool.idle());
    books.pool.dropIdle();
    Check.equal(0, books.pool.idle());
    Check.equal(100, books.freed.size());
  }

  public static void withTheLastModelGoesWhatIsKeptAndWhatComesBackLater() {
    Books books = new Books();
    books.pool.addModel();
    Share late = books.take(100);
    books.used(100);
    books.pool.removeModel();
    Check.equal(1, books.pool.idle());
    books.pool.removeModel();
    late.leave();
    Check.equal(0, books.pool.idle());
    Check.equal(2, books.freed.size());
  }

  public static void aCondemnedBlockIsNeverHandedOutAgain() {
    Books books = new Books();
    Share share = books.take(100);
    share.block().condemn();
    share.leave();
    Check.equal(List.of(1), books.freed);
    Check.equal(2, books.take(100).block().number());
    books.pool.takeOnce(100, Deadline.NEVER).leave();
    Check.equal(List.of(1, 3), books.freed);
  }

  public static void aBlockWhoseLaneClosedIsNotUsedAgainNorFreed() {
    Books books = new Books();
    books.used(100);
    books.life.set(false);
    books.life = new AtomicBoolean(true);
    Check.equal(2, books.used(100));
    books.pool.dropIdle();
    Check.equal(List.of(2), books.freed);
  }

  public static void aBlockThatAUserHasAViewOfIsFreedButNotUsedAgain() {
    Books books = new Books();
    Share share = books.take(100);
    Memory memory = new SharedMemory(share, 64, 10);
    share.leave();
    ByteBuffer view = memory.view();
    memory.release();
    Check.equal(List.of(1), books.freed);
    Check.equal(0, books.pool.idle());
    Check.equal(2, books.used(100));
    Check.equal((byte) 7, view.put(9, (byte) 7).get(9));
  }

  public static void theLastTensorOfABlockGivesItBack() {
    Books books = new Books();
    Share share = books.take(100);
    Memory one = new SharedMemory(share, 0, 10);
    Memory other = new SharedMemory(share, 64, 10);
    share.leave();
    one.release();
    Check.equal(0, books.pool.idle());
    Check.that(other.isKnownTo(books), "the worker does not know it");
    Check.that(!other.isKnownTo("another session"), "another worker knows it");
    other.release();
    Check.equal(1, books.pool.idle());
  }

  public static void thereAreNoMoreBlocksThanASessionMayHave() {
    Books books = new Books();
    List<Share> all = new ArrayList<>();
    for (int i = 0; i < Pool.MAX_BLOCKS; ++i) {
      all.add(books.pool.adopt(new Block(9, new Mapping(ByteBuffer.allocate(64)), books.life)));
    }
    Check.equal(null, books.take(100));
    all.get(0).leave();
    Check.that(books.take(100) != null, "the idle one makes no room");
  }

  public static void whatIsKeptForLaterGoesWhenMemoryIsShort() {
    Books books = new Books();
    books.used(100);
    books.isFull = true;
    Check.equal(null, books.take(MIB));
    Check.equal(0, books.pool.idle());
    Check.equal(1, books.freed.size());
    Check.equal(null, books.take(1L + Limits.BLOCK));
  }

  public static void aBlockMayComeBackWhenTheWorkerIsGone() {
    Books books = new Books();
    Share share = books.take(100);
    books.used(100);
    books.pool.close();
    Check.equal(0, books.pool.idle());
    share.leave();
    Check.equal(0, books.pool.idle());
    Check.equal(List.of(), books.freed);
  }

  public static void blocksComeBackFromManyThreads() {
    Books books = new Books();
    Check.threads(8, i -> {
      for (int j = 0; j < 200; ++j) {
        Share share = books.take((1L + (i + j) % 3) << 16);
        share.block().part(0, 1).put((byte) i);
        Thread.yield();
        Check.equal((byte) i, share.block().part(0, 1).get());
        share.leave();
      }
    });
    Check.that(books.pool.idle() <= 24, "too many were made");
  }
}
