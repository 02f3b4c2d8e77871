package com.mindspore.internal.wire;

import java.util.List;

/** Makes and frees blocks; one thread at a time. */
interface BlockSource {
  /** A new block of at least this size; throws an MSException. */
  Block make(long size, Deadline due);

  /** Gives blocks back, by their numbers; throws an MSException. */
  void free(List<Integer> numbers);

  /** All that it made is gone. */
  void close();
}
