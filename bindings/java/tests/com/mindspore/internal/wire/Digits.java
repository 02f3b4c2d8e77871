package com.mindspore.internal.wire;

import com.mindspore.check.Check;
import com.mindspore.internal.BuildRequest;
import com.mindspore.internal.Filled;
import com.mindspore.internal.Memory;
import com.mindspore.internal.TensorInfo;
import java.util.List;

/** Requests of the model digits.mindir, and what comes of them. */
final class Digits {
  static final int FLOAT32 = 43;
  static final int BYTES = 256; // of one

  private Digits() {}

  /** So many digits, all of one value, in memory on the heap. */
  static Filled of(int count, float value) {
    return in(Memory.onHeap(count * BYTES), count, value);
  }

  /** The same, in memory that is there. */
  static Filled in(Memory memory, int count, float value) {
    for (int i = 0; i < count * BYTES; i += 4) {
      memory.buffer().putFloat(i, value);
    }
    return new Filled(new TensorInfo("x", FLOAT32, new long[] {count, 1, 8, 8}), memory);
  }

  static BuildRequest build() {
    String path = System.getenv("MSLITE_MODEL");
    if (path == null) {
      Check.skip("MSLITE_MODEL is not set");
    }
    BuildRequest request = new BuildRequest();
    request.isRunner = true;
    request.path = path;
    request.settings.add(new BuildRequest.Setting("cpu.thread_num", "1"));
    return request;
  }

  /** Whether so many rows came, each of which sums up to 1. */
  static void check(int count, List<Filled> outputs) {
    Check.equal(1, outputs.size());
    Filled output = outputs.get(0);
    Check.equal(new long[] {count, 10}, output.info().shape());
    for (int row = 0; row < count; ++row) {
      float sum = 0;
      for (int i = 0; i < 10; ++i) {
        sum += output.memory().buffer().getFloat(4 * (10 * row + i));
      }
      Check.that(Math.abs(sum - 1) < 1e-3, "row " + row + " sums up to " + sum);
    }
  }

  static void release(List<Filled> all) {
    all.forEach(one -> one.memory().release());
  }
}
