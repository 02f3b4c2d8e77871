package com.mindspore.internal;

import com.mindspore.config.DataType;
import com.mindspore.internal.wire.Session;
import java.lang.ref.Cleaner;
import java.lang.reflect.Array;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.function.Consumer;
import java.util.stream.IntStream;

/**
 * What is behind an MSTensor: what it is, and its data.
 *
 * <p>The data is an array that the user set, which is read again by each request, or else memory,
 * on which the tensor has a hold. Everything happens under the lock of this object, so a free() in
 * another thread never takes away bytes that are being read. Memory that is shared with the worker
 * is let go of by a cleaner when the tensor is forgotten; the lock keeps it reachable meanwhile.
 */
public final class Tensor {
  private final Session session; // where large memory is to be from; null: wherever there is one

  // the others are guarded by this object's lock
  private TensorInfo info; // null: empty, or freed
  private Object array; // of the user; counts before the memory
  private Memory memory; // has as many bytes as the shape says; null: none yet
  private Cleaner.Cleanable letGo; // of the memory, when it is shared
  private boolean isViewed; // the user has a view of the memory, and may write to it

  /** One that is nothing, as if it were freed. */
  public Tensor() {
    this(null, null);
  }

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

  /** Copies the whole buffer; {@code what} is the call that it is for. */
  public synchronized void copy(String what, ByteBuffer given) {
    int size = size(what);
    if (!given.isDirect()) {
      throw Errors.input(what + ": got a ByteBuffer on the heap, wanted a direct one, for "
          + shown() + "; use ByteBuffer.allocateDirect, or set the array itself");
    }
    if (given.capacity() != size) {
      throw Errors.input(what + ": got a ByteBuffer of capacity " + given.capacity() + ", wanted "
          + size + " for " + shown());
    }
    fill(session, into -> into.put(given.duplicate().clear()));
    array = null;
  }

  /** Copies a Java array. */
  public synchronized void copy(Nested given) {
    size("createTensor");
    fill(session, given::putInto);
  }

  /** The array that was set last, itself; else a copy, of the type that fits. */
  public synchronized Object array() {
    if (array != null) {
      return array;
    }
    switch (info == null ? 0 : Types.meant(info.type())) {
      case DataType.kNumberTypeFloat16:
      case DataType.kNumberTypeFloat32:
        return floats();
      case DataType.kNumberTypeInt32:
        return ints();
      case DataType.kNumberTypeInt64:
        return longs();
      default:
        return bytes();
    }
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
      fill(session, into -> Elements.put(array, Types.meant(info.type()), into));
      array = null; // from now on the data is what the user writes to the view
    } else if (memory == null) {
      fill(session, into -> into.put(new byte[into.remaining()])); // used blocks have old data
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
      fill(to, into -> Elements.put(array, sent.type(), into));
    } else if (memory == null) {
      throw Errors.input(
          what + " has no data: " + shown() + "; call setData, after setShape or resize");
    } else if (size > Memory.SMALL && !memory.isKnownTo(to)) {
      Memory shared = to.allocate(size);
      if (shared != null) {
        shared.buffer().put(memory.buffer());
        if (isViewed) { // the user goes on to write where the view is
          return new Filled(sent, shared);
        }
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
    boolean isFull = true; // no dim is open, none is 0: it has elements
    for (long dim : shape) {
      if (dim < -1 || shape.length > Types.MAX_RANK) {
        throw Errors.input("got shape " + Types.shown(shape) + ", wanted up to " + Types.MAX_RANK
            + " dims of 0 or more, or -1 where one is not known yet");
      }
      isFull &= dim > 0;
    }
    long bytes = Types.bytes(info.type(), shape);
    if (bytes > Integer.MAX_VALUE || isFull && bytes == 0) {
      throw Errors.input("shape " + Types.shown(shape) + " has more than " + Integer.MAX_VALUE
          + " bytes, which is the most that a tensor has here");
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
    TensorInfo known = alive(what);
    if (!Types.isKnown(known.shape())) {
      throw Errors.input(
          what + ": not all dims of " + shown() + " are known; call setShape or resize first");
    }
    checkShape(known);
    return (int) Types.bytes(known.type(), known.shape());
  }

  private String shown() {
    return "tensor '" + info.name() + "' of data type " + info.type() + " and shape "
        + Types.shown(info.shape());
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

  // Writes all of the data, in place unless a request is under way with what is there. Large memory
  // is from the session that is given; when it is null, from whichever there is.
  private void fill(Session given, Consumer<ByteBuffer> how) {
    int size = (int) Types.bytes(info.type(), info.shape());
    Session from = size <= Memory.SMALL ? null : given != null ? given : Session.running();
    if (memory != null && !memory.isHeldByOthers() && (from == null || memory.isKnownTo(from))) {
      how.accept(memory.buffer());
      return;
    }
    Memory fresh = from == null ? null : from.allocate(size);
    if (fresh == null) {
      fresh = Memory.onHeap(size);
    }
    try {
      how.accept(fresh.buffer());
    } catch (RuntimeException error) {
      fresh.release();
      throw error;
    }
    dropMemory();
    keep(fresh);
  }

  private void keep(Memory taken) {
    memory = taken;
    if (taken.isShared()) {
      letGo = Forgotten.register(this, taken::release);
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
}
