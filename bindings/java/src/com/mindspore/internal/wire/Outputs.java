package com.mindspore.internal.wire;

import com.mindspore.MSException;
import com.mindspore.internal.Errors;
import com.mindspore.internal.Filled;
import com.mindspore.internal.Memory;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

/** What an answer brings: outputs in memory of their own, or in blocks, which they share. */
final class Outputs {
  private final List<Filled> results = new ArrayList<>();
  private long needed; // of the room

  private Outputs() {}

  /**
   * Reads the body of an answer to PREDICT.
   *
   * @param room where the worker may have put outputs; may be null
   */
  static Outputs read(Reader body, Share room, Link link, Pool pool, Call call) {
    Outputs outputs = new Outputs();
    List<Share> blocks = new ArrayList<>();
    if (room != null) {
      room.join();
      blocks.add(room);
    }
    boolean isWhole = false;
    try {
      open(Bodies.made(body), link, pool, call, blocks);
      for (WireTensor tensor : WireTensor.readAll(body, "outputs")) {
        outputs.add(tensor, blocks);
      }
      isWhole = true;
      return outputs;
    } finally {
      blocks.forEach(Share::leave);
      if (!isWhole) {
        outputs.results.forEach(result -> result.memory().release());
      }
    }
  }

  /** The blocks that the worker made for the outputs; they are the pool's from now on. */
  private static void open(List<Made> all, Link link, Pool pool, Call call, List<Share> blocks) {
    for (int i = 0; i < all.size(); ++i) {
      try {
        blocks.add(pool.adopt(link.openBlock(all.get(i), call.life())));
      } catch (MSException | OutOfMemoryError error) {
        all.subList(i, all.size()).forEach(made -> pool.disown(made.block()));
        throw error;
      }
    }
  }

  List<Filled> results() {
    return results;
  }

  /** Bytes that would have been enough for those that are in blocks. */
  long needed() {
    return needed;
  }

  private void add(WireTensor tensor, List<Share> blocks) {
    Memory memory;
    if (tensor.data() != null) {
      memory = onHeap(tensor.data());
    } else if (tensor.place() != null) {
      memory = inBlock(tensor, blocks);
    } else {
      throw Errors.wire("the worker's output '" + tensor.info().name() + "' came without data");
    }
    results.add(new Filled(tensor.info(), memory));
  }

  private Memory inBlock(WireTensor tensor, List<Share> blocks) {
    Share share = shareOf(tensor, blocks);
    int offset = (int) tensor.place().offset();
    int size = (int) tensor.place().size();
    needed = Math.max(needed, Limits.aligned((long) offset + size));
    // what is small does not keep a block
    return size <= Limits.INLINE ? onHeap(share.block().part(offset, size))
                                 : new SharedMemory(share, offset, size);
  }

  /** The block that an output lies in, all of it. */
  private static Share shareOf(WireTensor tensor, List<Share> blocks) {
    Place place = tensor.place();
    for (Share share : blocks) {
      if (share.block().number() == place.block()) {
        checkInside(tensor, share.block().size());
        return share;
      }
    }
    throw Errors.wire("the worker's output '" + tensor.info().name()
        + "' lies in a block that is not its: there"
        + " is no block " + Integer.toUnsignedString(place.block()));
  }

  private static void checkInside(WireTensor tensor, int size) {
    long offset = tensor.place().offset();
    boolean isInside = offset >= 0 && offset <= size && tensor.place().size() <= size - offset;
    if (!isInside || Limits.aligned(offset) != offset) {
      throw Errors.wire("the worker's output '" + tensor.info().name() + "' lies at byte "
          + Long.toUnsignedString(offset) + " of a block of " + size + " bytes, which cannot be");
    }
  }

  private static Memory onHeap(ByteBuffer bytes) {
    Memory memory = Memory.onHeap(bytes.remaining());
    memory.buffer().put(bytes);
    return memory;
  }
}
