package com.mindspore.internal.wire;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * For how long a worker has been silent. Not by a clock alone, for one that computes may have no
 * time to answer, as when its interpreter is held by what it builds. One thread at a time.
 */
final class Pulse {
  // tests make it quicker
  static volatile long everyMs = 10_000; // after which who waits looks after the worker
  static volatile long askMs = 10_000; // for it to say that it is there
  static volatile long silentMs =
      60_000; // after which one that does not, nor computes, is given up

  private static final int USER_TICKS = 11; // of the fields that follow the name
  private static final long NS_PER_MS = 1_000_000;

  private final long pid;
  private boolean wasAsked;
  private long askedNs;
  private long sinceNs; // the last sign of life
  private long ticks = -1;

  Pulse(long pid) {
    this.pid = pid;
  }

  /** Before it is asked. If that was long ago, it counts from now on: nobody waited meanwhile. */
  void begin() {
    long now = System.nanoTime();
    // who waits asks every everyMs, for askMs at most
    if (!wasAsked || now - askedNs > 2 * (everyMs + askMs) * NS_PER_MS) {
      heard();
    }
    wasAsked = true;
    askedNs = now;
  }

  /** It answered. */
  void heard() {
    sinceNs = System.nanoTime();
    askedNs = sinceNs;
    ticks = -1;
  }

  /** It did not. For how long it has neither answered nor computed. */
  long silentMs() {
    long found = cpuTicks(pid);
    if (found != ticks) {
      ticks = found;
      sinceNs = System.nanoTime();
    }
    return (System.nanoTime() - sinceNs) / NS_PER_MS;
  }

  /** The processor time of a process in ticks of the kernel; -1 when it is gone. */
  static long cpuTicks(long pid) {
    String facts;
    try {
      facts = Files.readString(Path.of("/proc/" + pid + "/stat"));
    } catch (IOException gone) {
      return -1;
    }
    String[] fields = facts.substring(facts.lastIndexOf(')') + 2).split(" ");
    return Long.parseLong(fields[USER_TICKS]) + Long.parseLong(fields[USER_TICKS + 1]);
  }
}
