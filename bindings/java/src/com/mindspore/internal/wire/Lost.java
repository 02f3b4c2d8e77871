package com.mindspore.internal.wire;

/** The other side ended the connection, or does not go on with it: no answer will come. */
final class Lost extends Exception {
  private static final long serialVersionUID = 1L;

  /** Says what it did, such as "closed the connection". */
  Lost(String what) {
    super(what, null, false, false);
  }

  Lost(String what, Exception cause) {
    super(what + ": " + cause.getMessage(), cause, false, false);
  }
}
