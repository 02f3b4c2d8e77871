package com.mindspore;

/**
 * What went wrong, for callers who prefer an exception to a {@code false}: see {@code throwing()}
 * of each class. The message says what, got, wanted and what to do.
 */
public class MSException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  private final int code;
  private final String kind;

  /**
   * An error of the runtime.
   *
   * @param code a number of the C++ interface's StatusCode
   * @param kind a name such as "RequestTimeoutError"; the documentation of the wire protocol lists
   *     all of them
   * @param message what, got, wanted and what to do
   */
  public MSException(int code, String kind, String message) {
    super(message);
    this.code = code;
    this.kind = kind;
  }

  /**
   * The number that the C++ interface has for this error.
   *
   * @return a StatusCode, such as -11 where too many requests wait already
   */
  public int code() {
    return code;
  }

  /**
   * What kind of error it is.
   *
   * @return a name such as "QueueFullError", which does not change
   */
  public String kind() {
    return kind;
  }
}
