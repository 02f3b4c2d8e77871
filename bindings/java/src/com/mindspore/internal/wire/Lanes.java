package com.mindspore.internal.wire;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;

/** The lanes of a session: as many as there are requests at once, kept for the next ones. */
final class Lanes {
  private final Link link;
  private final Deque<Lane> idle = new ArrayDeque<>();
  private int inUse;
  private boolean isClosed;

  Lanes(Link link) {
    this.link = link;
  }

  Link link() {
    return link;
  }

  /** A lane that nobody else uses. */
  Lane take(Deadline due) {
    synchronized (this) {
      if (!idle.isEmpty()) {
        ++inUse;
        return idle.pop();
      }
    }
    Lane lane = link.openLane(due);
    synchronized (this) {
      ++inUse;
    }
    return lane;
  }

  /** Closes it where its request was not answered. */
  void giveBack(Lane lane) {
    synchronized (this) {
      --inUse;
      if (lane.isFree() && !isClosed) {
        idle.push(lane);
        return;
      }
    }
    lane.close();
  }

  /** Whether at most one is in use; others may take some while this is asked. */
  synchronized boolean isAlone() {
    return inUse <= 1;
  }

  /** Closes them all, as soon as their requests have ended. */
  void close() {
    List<Lane> closed;
    synchronized (this) {
      isClosed = true;
      closed = new ArrayList<>(idle);
      idle.clear();
    }
    closed.forEach(Lane::close);
  }
}
