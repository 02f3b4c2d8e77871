package com.mindspore.internal.wire;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;

/** A request: its lane, and the blocks that the worker uses for it. */
final class Call implements AutoCloseable {
  private final Lanes lanes;
  private final Deadline due;
  private final Lane lane;
  private final List<Share> lent = new ArrayList<>();

  Call(Lanes lanes, Deadline due) {
    this.lanes = lanes;
    this.due = due;
    lane = lanes.take(due);
  }

  Deadline due() {
    return due;
  }

  Writer begin() {
    return lane.begin();
  }

  /** Takes the caller's part in a block, until the end of the request. */
  Share lend(Share share) {
    lent.add(share);
    return share;
  }

  /** The answer, valid until the end of this. */
  Reader ask(Message message) {
    // only one at a time: threads that stay awake are in the way of those that work
    boolean staysAwake = message == Message.PREDICT && lanes.isAlone();
    try {
      return lane.ask(message, lanes.link().nextRequest(), due, staysAwake);
    } catch (Lost lost) {
      throw lanes.link().explained(lost);
    }
  }

  /** The answer made sense. */
  void accept() {
    lane.accept();
  }

  AtomicBoolean life() {
    return lane.life();
  }

  /** Blocks of a request that was not answered are condemned: the worker may still be at them. */
  @Override
  public void close() {
    boolean isAnswered = lane.isFree();
    lanes.giveBack(lane);
    for (Share share : lent) {
      if (!isAnswered) {
        share.block().condemn();
      }
      share.leave();
    }
  }
}
