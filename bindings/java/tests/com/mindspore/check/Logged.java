package com.mindspore.check;

import java.util.ArrayList;
import java.util.List;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;

/** Collects what the library writes to its log, until it is closed. */
public final class Logged extends Handler implements AutoCloseable {
  private static final Logger LOG = Logger.getLogger("com.mindspore");

  private final List<String> lines = new ArrayList<>();

  /** Begins. */
  public Logged() {
    LOG.addHandler(this);
  }

  /** Lines such as "SEVERE: it failed". */
  public synchronized List<String> lines() {
    return List.copyOf(lines);
  }

  @Override
  public synchronized void publish(LogRecord record) {
    lines.add(record.getLevel().getName() + ": " + record.getMessage());
  }

  @Override
  public void flush() {}

  @Override
  public void close() {
    LOG.removeHandler(this);
  }
}
