package com.mindspore.internal.wire;

import com.mindspore.MSException;
import com.mindspore.internal.Errors;
import java.util.List;
import java.util.function.Consumer;

/**
 * The blocks of a worker, over a lane of their own: a block lasts no longer than the lane over
 * which it was made.
 */
final class WorkerBlocks implements BlockSource {
  // of a worker that hangs; to make the largest block takes a few seconds
  private static final long LIMIT_MS = 60_000;

  private final Link link;
  private Lane lane;

  WorkerBlocks(Link link) {
    this.link = link;
  }

  @Override
  public Block make(long size, Deadline due) {
    Reader body = ask(Message.ALLOCATE, out -> out.u64(size), due);
    List<Made> made = Bodies.made(body);
    if (made.size() != 1 || Long.compareUnsigned(made.get(0).size(), size) < 0) {
      throw Errors.wire(
          "the worker made something else than the block of " + size + " bytes that was asked for");
    }
    lane.accept();
    try {
      return link.openBlock(made.get(0), lane.life());
    } catch (MSException error) {
      free(List.of(made.get(0).block())); // nobody else would
      throw error;
    }
  }

  @Override
  public void free(List<Integer> numbers) {
    ask(Message.FREE, out -> Bodies.writeFree(out, numbers), Deadline.NEVER);
    lane.accept();
  }

  private Reader ask(Message message, Consumer<Writer> write, Deadline due) {
    Deadline sooner = due.orIn(LIMIT_MS);
    if (lane == null || !lane.isFree()) {
      close();
      lane = link.openLane(sooner);
    }
    write.accept(lane.begin());
    try {
      return lane.ask(message, link.nextRequest(), sooner, false);
    } catch (Lost lost) {
      close();
      throw link.explained(lost);
    } catch (MSException error) {
      if (!lane.isFree()) {
        close();
      }
      throw error;
    }
  }

  @Override
  public void close() {
    if (lane != null) {
      lane.close();
      lane = null;
    }
  }
}
