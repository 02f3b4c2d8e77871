package com.mindspore.config;

/**
 * What the original loads its native library with. There is none here: a program may call it, and
 * nothing happens.
 */
public class MindsporeLite {
  /** What {@code get...Ptr()} return of an object that is not initialised, or freed. */
  public static final long POINTER_DEFAULT_VALUE = 0L;

  /** Nobody needs one; it is there because the original has it. */
  public MindsporeLite() {}

  /** Does nothing: there is nothing to load. */
  public static void init() {}
}
