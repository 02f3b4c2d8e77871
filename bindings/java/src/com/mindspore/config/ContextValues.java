package com.mindspore.config;

import com.mindspore.internal.ContextState;
import com.mindspore.internal.Errors;
import com.mindspore.internal.Identity;
import java.util.ArrayList;
import java.util.List;

/**
 * What an MSContext says, from its init() to its free(). A RunnerConfig that the context was given
 * to has it, too: it sees what is set later, and goes on to have it when the context is freed.
 */
final class ContextValues {
  final long identity = Identity.next();

  private int threadNum;
  private int interOpParallelNum;
  private int affinityMode;
  private List<Integer> affinityCores = List.of();
  private final List<ContextState.Device> devices = new ArrayList<>();

  synchronized ContextState state() {
    return new ContextState(
        threadNum, interOpParallelNum, affinityMode, affinityCores, List.copyOf(devices));
  }

  synchronized void setThreadNum(int number) {
    if (number < 0) {
      throw Errors.wrong("got thread number " + number + ", wanted 0 (automatic) or more");
    }
    threadNum = number;
  }

  synchronized void setInterOpParallelNum(int number) {
    if (number < 0) {
      throw Errors.wrong("got " + number + " operators at once, wanted 0 (automatic) or more");
    }
    interOpParallelNum = number;
  }

  synchronized void setAffinityMode(int mode) {
    if (mode < CpuBindMode.NO_BIND || mode > CpuBindMode.MID_CPU) {
      throw Errors.wrong("got CPU bind mode " + mode
          + ", wanted NO_BIND (0), HIGHER_CPU (1) or MID_CPU (2) of CpuBindMode");
    }
    affinityMode = mode;
  }

  synchronized void setAffinityCores(List<Integer> cores) {
    for (Integer core : cores) {
      if (core == null || core < 0) {
        throw Errors.wrong("got cores " + cores + ", wanted their numbers, from 0 on");
      }
    }
    affinityCores = List.copyOf(cores);
  }

  synchronized void addDevice(ContextState.Device device) {
    devices.add(device);
  }
}
