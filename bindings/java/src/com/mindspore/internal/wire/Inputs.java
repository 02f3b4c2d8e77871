package com.mindspore.internal.wire;

import com.mindspore.internal.Errors;
import com.mindspore.internal.Filled;
import com.mindspore.internal.Memory;
import com.mindspore.internal.TensorInfo;
import com.mindspore.internal.Types;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

/**
 * Tensors as they are sent. What lies in a block that the worker knows is referred to; what is
 * small goes into the frame; the rest is copied into a block, which is lent to the call.
 */
final class Inputs {
  private static final int UINT8 = 37;

  private Inputs() {}

  /** The inputs of a request to that session. */
  static List<WireTensor> placed(List<Filled> inputs, Object session, Pool pool, Call call) {
    List<WireTensor> placed = new ArrayList<>(inputs.size());
    long end = 0; // of what is copied
    int left = Limits.INLINE_TOTAL;
    for (Filled input : inputs) {
      Memory memory = memoryOf(input);
      if (memory instanceof SharedMemory shared && shared.isKnownTo(session)) {
        placed.add(inBlock(input, shared.block(), shared.offset()));
      } else if (memory.size() <= Math.min(Limits.INLINE, left)) {
        placed.add(new WireTensor(nameless(input), memory.buffer(), null));
        left -= memory.size();
      } else {
        placed.add(null);
        end = Limits.aligned(end + memory.size());
      }
    }
    if (end > 0) {
      copy(inputs, placed, call.lend(room(pool.take(end, call.due()), end)).block());
    }
    return placed;
  }

  /** Those that have no place yet go into the block. */
  private static void copy(List<Filled> inputs, List<WireTensor> placed, Block block) {
    int end = 0;
    for (int i = 0; i < placed.size(); ++i) {
      if (placed.get(i) == null) {
        Memory memory = inputs.get(i).memory();
        block.part(end, memory.size()).put(memory.buffer());
        placed.set(i, inBlock(inputs.get(i), block.number(), end));
        end = (int) Limits.aligned(end + memory.size());
      }
    }
  }

  /** The content of a model as one tensor; in a block when it is large. */
  static List<WireTensor> content(ByteBuffer bytes, Pool pool, Call call) {
    if (bytes == null) {
      return List.of();
    }
    int size = bytes.remaining();
    TensorInfo info = new TensorInfo("model", UINT8, new long[] {size});
    if (size <= Limits.INLINE) {
      return List.of(new WireTensor(info, bytes, null));
    }
    Share share = call.lend(room(pool.takeOnce(size, call.due()), size));
    share.block().part(0, size).put(bytes.duplicate());
    return List.of(new WireTensor(info, null, new Place(share.block().number(), 0, size)));
  }

  private static Memory memoryOf(Filled input) {
    long wanted = WireTensor.bytesOf(input.info());
    if (wanted < 0) {
      throw Errors.input("tensor '" + input.info().name() + "' has shape "
          + Types.shown(input.info().shape()) + ", whose dims are open, or too large");
    }
    if (input.memory() == null || input.memory().size() != wanted) {
      throw Errors.input("tensor '" + input.info().name() + "' has "
          + (input.memory() == null ? "no data" : input.memory().size() + " bytes of data")
          + ", its shape and type want " + wanted + "; fill it first");
    }
    return input.memory();
  }

  private static WireTensor inBlock(Filled input, int block, int offset) {
    Place place = new Place(block, offset, input.memory().size());
    return new WireTensor(nameless(input), null, place);
  }

  /** A worker does not look at the names of inputs, but at whether they are UTF-8. */
  private static TensorInfo nameless(Filled input) {
    return new TensorInfo("", input.info().type(), input.info().shape());
  }

  private static Share room(Share share, long bytes) {
    if (share == null) {
      throw Errors.resource(bytes + " bytes of shared memory cannot be had for a request (at most "
          + Limits.BLOCK + " can); free memory, or send less at once");
    }
    return share;
  }
}
