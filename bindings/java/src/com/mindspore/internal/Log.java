package com.mindspore.internal;

import java.util.logging.Level;
import java.util.logging.LogRecord;
import java.util.logging.Logger;

/** What users see besides the result of a call: lines of the logger "com.mindspore". */
public final class Log {
  private static final Logger LOGGER = Logger.getLogger("com.mindspore");

  private Log() {}

  /**
   * Has the logger kept from now on: one that nobody has is forgotten, with the level and the
   * handlers that a program gave it before anything failed.
   */
  public static void keep() {}

  /** Something failed. */
  public static void severe(String message) {
    log(Level.SEVERE, message);
  }

  /** Something has no effect, or not the one that was meant. */
  public static void warning(String message) {
    log(Level.WARNING, message);
  }

  private static void log(Level level, String message) {
    if (LOGGER.isLoggable(level)) {
      LogRecord line = new LogRecord(level, message);
      line.setLoggerName(LOGGER.getName());
      line.setSourceClassName(null); // else each line would name this class
      LOGGER.log(line);
    }
  }
}
