package com.mindspore.config;

/** What a model runs on. */
public class DeviceType {
  /** The processor. */
  public static final int DT_CPU = 0;

  /** An NVIDIA GPU. */
  public static final int DT_GPU = 1;

  /** The NPU of a phone, which nothing is built for here. */
  public static final int DT_NPU = 2;

  /** A Huawei Ascend device. */
  public static final int DT_ASCEND = 3;

  /** Nobody needs one; it is there because the original has it. */
  public DeviceType() {}
}
