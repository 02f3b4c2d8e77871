package com.mindspore.config;

/** How the file of a model is written. */
public class ModelType {
  /** MindIR. */
  public static final int MT_MINDIR = 0;

  /** AIR, which cannot be read here. */
  public static final int MT_AIR = 1;

  /** OM of Ascend, which cannot be read here. */
  public static final int MT_OM = 2;

  /** ONNX. */
  public static final int MT_ONNX = 3;

  /** MindIR of MindSpore Lite. */
  public static final int MT_MINDIR_LITE = 4;

  /** The same as MT_MINDIR_LITE. */
  public static final int MT_MINDIR_OPT = 4;

  /** Nobody needs one; it is there because the original has it. */
  public ModelType() {}
}
