package com.mindspore.internal.wire;

import com.mindspore.MSException;
import com.mindspore.internal.BuildRequest;
import com.mindspore.internal.Built;
import com.mindspore.internal.Description;
import com.mindspore.internal.Filled;
import com.mindspore.internal.Memory;
import java.util.List;

/**
 * What this process has at its worker: the models there, the memory both share, the lanes.
 *
 * <p>One worker per process serves all models; it is started, or attached to, by the first build.
 * Every request takes a lane of its own, so any number of threads may be in here at once. When the
 * worker dies, whatever is under way fails with a WorkerDiedError, everything that was built there
 * stays unusable, and the next current() starts another worker.
 *
 * <p>All methods throw an MSException, but for those that say otherwise. None is disturbed by an
 * interrupt: the thread's flag stays as it is.
 */
public final class Session {
  private static final Object STARTING = new Object(); // held while a worker starts
  // how much longer than a deadline to wait for the worker, which says better what it was about
  private static final long LATE_MS = 250;
  private static volatile Session known;

  final Link link;
  private final Lanes lanes;
  private final Pool pool;
  private final Rooms rooms = new Rooms();

  Session(Link link) {
    this.link = link;
    lanes = new Lanes(link);
    pool = new Pool(this, new WorkerBlocks(link));
  }

  /** The one of this process; starts the worker where there is none, or none that lives. */
  public static Session current() {
    Session session = running();
    if (session != null) {
      return session;
    }
    synchronized (STARTING) {
      session = running();
      if (session != null) {
        return session;
      }
      String path = WorkerCommand.setting("mslite.socket", "MSLITE_SOCKET");
      session = new Session(path.isEmpty() ? Link.started() : Link.attached(path));
      Session before = known;
      known = session;
      if (before != null) {
        before.end();
      }
      return session;
    }
  }

  /** The same, but null where a worker would have to be started. Throws nothing. */
  public static Session running() {
    Session session = known;
    return session != null && session.link.isAlive() ? session : null;
  }

  /** Builds a model. */
  public Built build(BuildRequest request) {
    try (Call call = new Call(lanes, Deadline.NEVER)) {
      List<WireTensor> content = Inputs.content(request.content, pool, call);
      Bodies.writeBuild(call.begin(), request, content, "");
      Built built = Bodies.built(call.ask(Message.BUILD));
      call.accept();
      rooms.add(built.model(), built.description());
      pool.addModel();
      return built;
    }
  }

  /** Gives the inputs of a model other shapes. */
  public Description resize(int model, List<long[]> shapes) {
    try (Call call = new Call(lanes, Deadline.NEVER)) {
      Bodies.writeResize(call.begin(), model, shapes);
      Description description = Bodies.description(call.ask(Message.RESIZE));
      call.accept();
      rooms.set(model, description);
      return description;
    }
  }

  /**
   * Runs a model. The caller holds the inputs' memory meanwhile, and has a hold on each output's.
   *
   * <p>When the limit passes, the request is cancelled, and a RequestTimeoutError thrown.
   */
  public List<Filled> predict(int model, List<Filled> inputs, CallOptions options) {
    try (Call call = new Call(lanes, Deadline.in(options.limitMs()).later(LATE_MS))) {
      List<WireTensor> placed = Inputs.placed(inputs, this, pool, call);
      long wanted = rooms.of(model);
      Share room = wanted == 0 ? null : pool.take(wanted, call.due());
      Place place = Place.NOWHERE;
      if (room != null) {
        call.lend(room);
        place = new Place(room.block().number(), 0, room.block().size());
      }
      Bodies.writePredict(call.begin(), model, options, place, placed);
      Reader body = call.ask(Message.PREDICT);
      Outputs outputs = Outputs.read(body, room, link, pool, call);
      call.accept();
      rooms.set(model, outputs.needed());
      return outputs.results();
    }
  }

  /** How long a request of a model may take, as the worker read it; 0: as long as it takes. */
  public long limitMs(int model) {
    return (Long.parseLong(info(model, "timeout_us")) + 999) / 1000;
  }

  /** A fact about a model; of the worker itself when it is 0. */
  public String info(int model, String key) {
    try (Call call = new Call(lanes, Deadline.NEVER)) {
      Writer out = call.begin();
      out.u32(model);
      out.text(key);
      String fact = call.ask(Message.INFO).text("a fact");
      call.accept();
      return fact;
    }
  }

  /** Waits for the model's requests under way, then releases it. Throws nothing. */
  public void close(int model) {
    try (Call call = new Call(lanes, Deadline.NEVER)) {
      Writer out = call.begin();
      out.u32(model);
      out.u64(0); // its requests under way have as long as they take
      call.ask(Message.CLOSE);
      call.accept();
    } catch (MSException gone) {
      // the worker is, and the model with it
    }
    if (rooms.remove(model)) {
      pool.removeModel();
    }
  }

  /** Shared memory; null when it cannot be had. Throws nothing. */
  public Memory allocate(int size) {
    Share share = null;
    try {
      share = size <= 0 ? null : pool.take(size, Deadline.NEVER);
      return share == null ? null : new SharedMemory(share, 0, size);
    } catch (MSException gone) {
      return null;
    } finally {
      if (share != null) {
        share.leave();
      }
    }
  }

  /** Lets go of a worker that has ended. */
  void end() {
    link.close();
    lanes.close();
    pool.close();
  }
}
