package com.mindspore.config;

/** Which release this is. */
public class Version {
  // That of the Python package; a test holds both together.
  private static final String RELEASE = "0.1.0";

  /** Nobody needs one; it is there because the original has it. */
  public Version() {}

  /** Does nothing: there is nothing to load. */
  public static void init() {}

  /**
   * The release of this library, for people.
   *
   * @return such as "MindSpore Lite 1.2.3"
   */
  public static String version() {
    return "MindSpore Lite " + RELEASE;
  }
}
