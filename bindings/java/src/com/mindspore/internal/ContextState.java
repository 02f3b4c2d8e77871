package com.mindspore.internal;

import com.mindspore.config.AscendDeviceInfo;
import java.util.List;

/**
 * What an MSContext says at a moment; later changes of it are not seen.
 *
 * @param devices in the order in which they were added
 */
public record ContextState(int threadNum, int interOpParallelNum, int affinityMode,
    List<Integer> affinityCores, List<Device> devices) {
  /**
   * One device.
   *
   * @param type a number of DeviceType
   * @param ascend a copy of what was given; null for other types
   */
  public record Device(int type, boolean isFloat16, AscendDeviceInfo ascend) {}
}
