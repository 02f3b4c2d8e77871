package com.mindspore.config;

/** Which cores the threads of a model keep to. */
public class CpuBindMode {
  /** Any. */
  public static final int NO_BIND = 0;

  /** The fast ones first. */
  public static final int HIGHER_CPU = 1;

  /** The slower ones first. */
  public static final int MID_CPU = 2;

  /** Nobody needs one; it is there because the original has it. */
  public CpuBindMode() {}
}
