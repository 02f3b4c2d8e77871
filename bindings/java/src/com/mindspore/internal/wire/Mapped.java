package com.mindspore.internal.wire;

/**
 * How much memory is mapped. What users forget to free, or have views of, is the collector's to
 * find; but it looks when the heap is full, where a block of gigabytes is a few hundred bytes. So
 * it is reminded whenever much has been mapped since memory was low.
 */
final class Mapped {
  private static final long MUCH = 256 << 20; // a guess; where the heap is large, a look takes long

  /** Of this process. */
  static final Mapped ALL =
      new Mapped(Math.max(MUCH, Runtime.getRuntime().maxMemory() / 4), System::gc);

  private final long much;
  private final Runnable remind;
  private long bytes;
  private long low; // the least since the collector was reminded

  Mapped(long much, Runnable remind) {
    this.much = much;
    this.remind = remind;
  }

  /** So much was mapped. */
  void add(long size) {
    synchronized (this) {
      bytes += size;
      if (bytes - low <= much) {
        return;
      }
      low = bytes; // perhaps all of it is in use: not again before as much has come
    }
    remind.run();
  }

  /** So much is not mapped any more. */
  synchronized void remove(long size) {
    bytes -= size;
    low = Math.min(low, bytes);
  }
}
