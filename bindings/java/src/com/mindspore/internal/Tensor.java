package com.mindspore.internal;

import com.mindspore.config.DataType;
import com.mindspore.internal.wire.Session;
import java.lang.ref.Cleaner;
import java.lang.reflect.Array;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.function.Consumer;
import java.util.stream.IntStream;
import java.util.stream.LongStream;

/**
 * What is behind an MSTensor: what it is, and its data.
 *
 * <p>The data is an array that the user set, which is read again by each request, or else memory,
 * on which the tensor has a hold. Everything happens under the lock of this object, so a free() in
 * another thread never takes away bytes that are being read. Memory that is shared with the worker
 * is let go of by a cleaner when the tensor is forgotten; the lock keeps it reachable meanwhile.
 */
public final class Tensor {
  private static final int IN_FRAME = 16 * 1024; // up to this a frame is quicker than a block
  private static final Cleaner CLEANER = Cleaner.create(Tensor::cleaning);

  // all guarded by this
  private TensorInfo info; // null: empty, or freed
  private Session session; // where large memory is to be from; null: wherever there is one
  private Object array; // of the user; counts before the memory
  private Memory memory; // has as many bytes as the shape says; null: none yet
  private Cleaner.Cleanable letGo; // of the memory, when it is shared
  private boolean isViewed; // the user has a view of the memory, and may write to it

  /** One that is nothing, as if it were freed. */
  public Tensor() {}

  /** One without data. */
  public Tensor(TensorInfo info, Session session) {
    this.info = info;
    this.session = session;
  }

  /** What it is; null when it was freed. */
  public synchronized TensorInfo info() {
    return info;
  }

  /** Whether a request would find data; it needs none where the shape has a 0. */
  public synchronized boolean hasData() {
    return info != null && (array != null || memory != null || Types.isEmpty(info.shape()));
  }

  /** Another shape or type: the data is gone. A freed one stays freed. */
  public synchronized void describe(TensorInfo other) {
    if (info != null) {
      dropData();
      info = other;
    }
  }

  /** Another shape; data that has as many bytes stays. */
  public synchronized void reshape(long[] shape) {
    TensorInfo other = new TensorInfo(alive("setShape").name(), info.type(), shape);
    checkShape(other);
    if (Types.bytes(other.type(), shape) != Types.bytes(info.type(), info.shape())) {
      dropData();
    }
    info = other;
  }

  /** Takes a result over, with the caller's hold on its memory; only the name stays. */
  public synchronized void take(Filled result) {
    if (info == null) { // freed meanwhile
      result.memory().release();
      return;
    }
    dropData();
    info = new TensorInfo(info.name(), result.info().type(), result.info().shape());
    keep(result.memory());
  }

  /** Data of any type, by reference. */
  public synchronized void setBytes(byte[] bytes) {
    int size = size("setData");
    if (bytes.length != size) {
      throw Errors.input(
          "setData: got " + bytes.length + " bytes, wanted " + size + " for " + shown());
    }
    array = bytes;
  }

  /** An array of numbers, by reference; it fits tensors of these types only. */
  public synchronized void setNumbers(Object numbers, int... types) {
    size("setData");
    int length = Array.getLength(numbers);
    long wanted = Types.elements(info.shape());
    boolean fits = IntStream.of(types).anyMatch(type -> type == Types.meant(info.type()));
    if (!fits || length != wanted) {
      throw Errors.input("setData: got " + numbers.getClass().getComponentType() + "[" + length
          + "], wanted " + wanted + " elements for " + shown()
          + (fits ? "" : "; the array fits data type " + Arrays.toString(types)));
    }
    array = numbers;
  }

  /** Copies the whole buffer. */
  public synchronized void copy(ByteBuffer given) {
    int size = size("setData");
    if (!given.isDirect()) {
      throw Errors.input("setData: got a ByteBuffer on the heap, wanted a direct one, for "
          + shown() + "; use ByteBuffer.allocateDirect, or set the array itself");
    }
    if (given.capacity() != size) {
      throw Errors.input("setData: got a ByteBuffer of capacity " + given.capacity() + ", wanted "
          + size + " for " + shown());
    }
    fill(source(), into -> into.put(given.duplicate().clear()));
  }

  /** Copies a Java array. */
  public synchronized void copy(Nested given) {
    size("createTensor");
    fill(source(), given::putInto);
  }

  /** The array that was set last; null when the data is not an array of the user. */
  public synchronized Object array() {
    return array;
  }

  /** A copy of all bytes; empty when there are none. */
  public synchronized byte[] bytes() {
    ByteBuffer data = data();
    return data == null ? new byte[0] : Elements.bytes(data);
  }

  /** A copy; empty unless it has data of type Float32 or Float16. */
  public synchronized float[] floats() {
    ByteBuffer data = data(DataType.kNumberTypeFloat32);
    if (data != null) {
      return Elements.floats(data, DataType.kNumberTypeFloat32);
    }
    data = data(DataType.kNumberTypeFloat16);
    return data == null ? new float[0] : Elements.floats(data, DataType.kNumberTypeFloat16);
  }

  /** A copy; empty unless it has data of type Int32. */
  public synchronized int[] ints() {
    ByteBuffer data = data(DataType.kNumberTypeInt32);
    return data == null ? new int[0] : Elements.ints(data);
  }

  /** A copy; empty unless it has data of type Int64. */
  public synchronized long[] longs() {
    ByteBuffer data = data(DataType.kNumberTypeInt64);
    return data == null ? new long[0] : Elements.longs(data);
  }

  /** The memory itself, for the user to read and write; zeros where there was no data. */
  public synchronized ByteBuffer view() {
    size("getByteBuffer");
    if (array != null) {
      Object from = array;
      fill(source(), into -> Elements.put(from, Types.meant(info.type()), into));
    } else if (memory == null) {
      // blocks that were used before have old data in them
      fill(source(), into -> into.put(new byte[into.remaining()]));
    }
    isViewed = true;
    return memory.view();
  }

  /**
   * The data for a request to that session, in memory that it knows where it is large. The caller
   * gets a hold of its own.
   */
  public synchronized Filled content(String what, Session to) {
    int size = size(what);
    TensorInfo sent = new TensorInfo(info.name(), Types.meant(info.type()), info.shape());
    if (size == 0) {
      return new Filled(sent, Memory.onHeap(0));
    }
    if (array != null) {
      Object from = array;
      fill(to, into -> Elements.put(from, sent.type(), into));
      array = from; // the next request reads it again
    } else if (memory == null) {
      throw Errors.input(
          what + " has no data: " + shown() + "; call setData, after setShape or resize");
    } else if (size > IN_FRAME && !memory.isKnownTo(to)) {
      Memory shared = to.allocate(size);
      if (shared != null && isViewed) { // the user goes on to write where the view is
        shared.buffer().put(memory.buffer());
        return new Filled(sent, shared);
      }
      if (shared != null) {
        shared.buffer().put(memory.buffer());
        dropMemory();
        keep(shared);
      }
    }
    memory.hold();
    return new Filled(sent, memory);
  }

  /** Lets go of everything; once more does no harm. */
  public synchronized void free() {
    dropData();
    info = null;
  }

  /** Throws when no tensor has this shape; dims may be open. */
  public static void checkShape(TensorInfo info) {
    long[] shape = info.shape();
    boolean isRight = shape.length <= Types.MAX_RANK && LongStream.of(shape).allMatch(d -> d >= -1);
    if (!isRight) {
      throw Errors.input("got shape " + Types.shown(shape) + ", wanted up to " + Types.MAX_RANK
          + " dims of 0 or more, or -1 where one is not known yet");
    }
    long bytes = Types.bytes(info.type(), shape);
    boolean isTooLarge = bytes == 0 && LongStream.of(shape).allMatch(d -> d > 0);
    if (isTooLarge || bytes > Integer.MAX_VALUE) {
      throw Errors.input(
          "shape " + Types.shown(shape) + " has more than 2147483647 bytes, a tensor's limit");
    }
  }

  private TensorInfo alive(String what) {
    if (info == null) {
      throw Errors.input(what + ": the tensor was freed, or is empty");
    }
    return info;
  }

  // The bytes that the shape needs.
  private int size(String what) {
    alive(what);
    if (!Types.isKnown(info.shape())) {
      throw Errors.input(
          what + ": not all dims of " + shown() + " are known; call setShape or resize first");
    }
    checkShape(info);
    return (int) Types.bytes(info.type(), info.shape());
  }

  private String shown() {
    return "tensor '" + info.name() + "' of data type " + info.type() + " and shape "
        + Types.shown(info.shape());
  }

  // Where memory is from when no request says so.
  private Session source() {
    return session != null ? session : Session.running();
  }

  // The bytes as they are now; null when there are none.
  private ByteBuffer data() {
    if (array != null) {
      int size = (int) Types.bytes(info.type(), info.shape());
      return Elements.bytesOf(array, Types.meant(info.type()), size);
    }
    return memory == null ? null : memory.buffer();
  }

  private ByteBuffer data(int type) {
    return info != null && Types.meant(info.type()) == type ? data() : null;
  }

  // Writes all of the data, in place unless a request is still under way with what is there.
  private void fill(Session from, Consumer<ByteBuffer> how) {
    int size = (int) Types.bytes(info.type(), info.shape());
    boolean isLarge = size > IN_FRAME && from != null;
    if (memory != null && !memory.isHeldByOthers() && (!isLarge || memory.isKnownTo(from))) {
      how.accept(memory.buffer());
    } else {
      Memory fresh = isLarge ? from.allocate(size) : null;
      if (fresh == null) {
        fresh = Memory.onHeap(size);
      }
      how.accept(fresh.buffer());
      dropMemory();
      keep(fresh);
    }
    array = null;
  }

  private void keep(Memory taken) {
    memory = taken;
    if (taken.isShared()) {
      letGo = CLEANER.register(this, taken::release);
    }
  }

  private void dropMemory() {
    if (letGo != null) {
      letGo.clean();
    } else if (memory != null) {
      memory.release();
    }
    memory = null;
    letGo = null;
    isViewed = false;
  }

  private void dropData() {
    dropMemory();
    array = null;
  }

  private static Thread cleaning(Runnable work) {
    Thread thread = new Thread(work, "mslite-cleaner");
    thread.setDaemon(true);
    return thread;
  }
}
