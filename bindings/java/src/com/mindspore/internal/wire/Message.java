package com.mindspore.internal.wire;

/** What a frame is about; the number of docs/wire.md is the ordinal. */
enum Message {
  ERROR,
  PREDICT,
  REPLY,
  BUILD_FINISH,
  EXIT,
  BUILD,
  DESCRIBE,
  RESIZE,
  UPDATE_WEIGHTS,
  INFO,
  STATISTICS,
  CANCEL,
  CLOSE,
  ALLOCATE,
  FREE,
  DERIVE;

  private static final Message[] ALL = values();

  /** The one of that number; null when there is none. */
  static Message of(int number) {
    return number < ALL.length ? ALL[number] : null;
  }
}
