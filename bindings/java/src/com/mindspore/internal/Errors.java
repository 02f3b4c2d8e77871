package com.mindspore.internal;

import com.mindspore.MSException;

/** The errors that begin on this side; docs/wire.md has the table of kinds and codes. */
public final class Errors {
  private Errors() {}

  /** A wrong argument. */
  public static MSException wrong(String message) {
    return new MSException(-3, "ValueError", message);
  }

  /** Something is wrong with the tensors of a request. */
  public static MSException input(String message) {
    return new MSException(-101, "InputError", message);
  }

  /** A file cannot be read. */
  public static MSException file(String message) {
    return new MSException(-200, "ModelFileError", message);
  }

  /** It was freed, or is not there yet. */
  public static MSException closed(String message) {
    return new MSException(-9, "ClosedError", message);
  }

  /** What the runtime cannot do here. */
  public static MSException unavailable(String message) {
    return new MSException(-7, "EngineUnavailableError", message);
  }

  /** Memory, descriptors or threads are used up. */
  public static MSException resource(String message) {
    return new MSException(-6, "ResourceError", message);
  }

  /** It took longer than it was given. */
  public static MSException timeout(String message) {
    return new MSException(268435470, "RequestTimeoutError", message);
  }

  /** The other side does not keep to the protocol. */
  public static MSException wire(String message) {
    return new MSException(268435472, "WireError", message);
  }

  /** The worker process has ended. */
  public static MSException died(String message) {
    return new MSException(1, "WorkerDiedError", message);
  }
}
