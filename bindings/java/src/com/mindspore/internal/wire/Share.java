package com.mindspore.internal.wire;

import java.util.concurrent.atomic.AtomicInteger;

/** A block that was handed out: the last one who has a part in it gives it back to the pool. */
final class Share {
  private final Pool pool;
  private final Block block;
  private final AtomicInteger parts = new AtomicInteger(1);

  /** The first part is the maker's. */
  Share(Pool pool, Block block) {
    this.pool = pool;
    this.block = block;
  }

  Block block() {
    return block;
  }

  boolean isOf(Object session) {
    return pool.isOf(session);
  }

  /** One more; only for who has a part. */
  void join() {
    parts.incrementAndGet();
  }

  /** One less, who does not touch the block any more. */
  void leave() {
    if (parts.decrementAndGet() == 0) {
      pool.takeBack(block);
    }
  }
}
