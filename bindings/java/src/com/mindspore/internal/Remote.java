package com.mindspore.internal;

import com.mindspore.internal.wire.Session;
import java.util.concurrent.atomic.AtomicBoolean;

/** A model of the worker, closed at most once. It knows nothing of the object that has it. */
public final class Remote {
  private final Session session;
  private final Built built;
  private final AtomicBoolean isClosed = new AtomicBoolean();

  private Remote(Session session, Built built) {
    this.session = session;
    this.built = built;
  }

  /** Has the worker build it. */
  public static Remote built(BuildRequest request) {
    Session session = Session.current();
    Remote remote = new Remote(session, session.build(request));
    remote.built.notes().forEach(Log::warning);
    return remote;
  }

  /** Where it is. */
  public Session session() {
    return session;
  }

  /** Its number there, never 0. */
  public int model() {
    return built.model();
  }

  /** What it was when it was built. */
  public Description description() {
    return built.description();
  }

  /** Releases it. */
  public void close() {
    if (isClosed.compareAndSet(false, true)) {
      session.close(built.model());
    }
  }
}
