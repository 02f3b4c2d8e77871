package com.mindspore;

import com.mindspore.config.DataType;
import com.mindspore.config.MindsporeLite;
import com.mindspore.internal.Errors;
import com.mindspore.internal.Failures;
import com.mindspore.internal.Filled;
import com.mindspore.internal.Identity;
import com.mindspore.internal.Log;
import com.mindspore.internal.NewTensor;
import com.mindspore.internal.Tensor;
import com.mindspore.internal.TensorInfo;
import com.mindspore.internal.Types;
import com.mindspore.internal.wire.Session;
import java.nio.ByteBuffer;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Supplier;
import java.util.stream.LongStream;

/**
 * What goes into a model, or comes out: a name, a type, a shape and data.
 *
 * <p>Data of more than 16 KiB lies in memory that is shared with the worker process, so a request
 * does not copy it. {@link #free()} gives it back; a tensor that is forgotten does so when the
 * collector finds it.
 *
 * <p>All methods may be called by any thread, and {@link #free()} at any time. Threads that run the
 * same model each use tensors of their own.
 *
 * <p>Calls that return false write a line to the log (logger "com.mindspore"); {@link #lastError()}
 * says why, and after {@link #throwing()} they throw. A tensor has at most 2^31-1 bytes.
 */
public class MSTensor implements AutoCloseable {
  private static final long MAX_INT = Integer.MAX_VALUE;

  private final long identity = Identity.next();
  private final Failures failures = new Failures();
  private final Tensor tensor;

  /**
   * A tensor that is nothing, as if it were freed: the tensors that are of use come from a model.
   */
  public MSTensor() {
    this(new Tensor());
  }

  /**
   * The same: there are no native tensors to wrap.
   *
   * @param tensorPtr any number; another one than 0 gives a line in the log
   */
  public MSTensor(long tensorPtr) {
    this();
    if (tensorPtr != MindsporeLite.POINTER_DEFAULT_VALUE) {
      Log.severe("new MSTensor(" + tensorPtr
          + "): there are no native tensors; use MSTensor.createTensor");
    }
  }

  private MSTensor(Tensor tensor) {
    this.tensor = tensor;
  }

  /** A tensor of a model, without data; large data will be allocated at this session. */
  static MSTensor describing(TensorInfo info, Session session) {
    return new MSTensor(new Tensor(info, session));
  }

  /** A result; takes over the caller's hold on its memory. */
  static MSTensor holding(Filled result, Session session) {
    MSTensor made = describing(result.info(), session);
    made.take(result);
    return made;
  }

  /**
   * A tensor with data, which is copied.
   *
   * @param tensorName its name
   * @param dataType a number of {@link DataType}
   * @param tensorShape its shape
   * @param buffer a direct buffer in little-endian order, all of which is taken: its capacity is
   *     the size of the tensor in bytes
   * @return null when an argument is null, or there is no such type; an empty tensor, whose {@link
   *     #lastError()} says why, when the others do not fit together
   */
  public static MSTensor createTensor(
      String tensorName, int dataType, int[] tensorShape, ByteBuffer buffer) {
    Failures.Work check = () -> NewTensor.check(tensorName, dataType, tensorShape, buffer);
    return created(check, () -> NewTensor.of(tensorName, dataType, tensorShape, buffer));
  }

  /**
   * A tensor of a Java array, which is copied, or of one number.
   *
   * @param tensorName its name
   * @param obj an array, of any rank, of float, double, int, long or boolean; or one of these boxed
   * @return null when an argument is null, or something else than such an array, or an empty one;
   *     an empty tensor, whose {@link #lastError()} says why, when inner arrays differ in length
   */
  public static MSTensor createTensor(String tensorName, Object obj) {
    return created(() -> NewTensor.check(tensorName, obj), () -> NewTensor.of(tensorName, obj));
  }

  /**
   * The same as {@link #createTensor(String, int, int[], ByteBuffer)}, but throws.
   *
   * @param tensorName its name
   * @param dataType a number of {@link DataType}
   * @param tensorShape its shape
   * @param buffer a direct buffer in little-endian order, all of which is taken
   * @return never null, never empty
   * @throws MSException when the arguments do not fit together, or one is null
   */
  public static MSTensor of(String tensorName, int dataType, int[] tensorShape, ByteBuffer buffer) {
    return new MSTensor(NewTensor.of(tensorName, dataType, tensorShape, buffer));
  }

  /**
   * The same as {@link #createTensor(String, Object)}, but throws.
   *
   * @param tensorName its name
   * @param obj an array, of any rank, of float, double, int, long or boolean; or one of these boxed
   * @return never null, never empty
   * @throws MSException when it is something else, or inner arrays differ in length
   */
  public static MSTensor of(String tensorName, Object obj) {
    return new MSTensor(NewTensor.of(tensorName, obj));
  }

  /**
   * Its shape.
   *
   * @return the dims; -1 is one that is not known yet, and one beyond the range of int is
   *     Integer.MAX_VALUE; empty when it was freed
   */
  public int[] getShape() {
    TensorInfo info = tensor.info();
    if (info == null) {
      return new int[0];
    }
    return LongStream.of(info.shape()).mapToInt(dim -> (int) Math.min(dim, MAX_INT)).toArray();
  }

  /**
   * The type of its elements.
   *
   * @return a number of {@link DataType}, or one that has no name there, such as 45 for bfloat16; 0
   *     when it was freed
   */
  public int getDataType() {
    TensorInfo info = tensor.info();
    return info == null ? 0 : info.type();
  }

  /**
   * How many bytes its data has.
   *
   * @return what the shape and the type need; 0 while a dim is not known, or when it was freed
   */
  public long size() {
    TensorInfo info = tensor.info();
    return info == null ? 0 : Types.bytes(info.type(), info.shape());
  }

  /**
   * How many elements it has.
   *
   * @return the product of the dims; 0 while one is not known, when they are more than an int can
   *     count, or when it was freed
   */
  public int elementsNum() {
    TensorInfo info = tensor.info();
    long count = info == null ? 0 : Types.elements(info.shape());
    return count > MAX_INT ? 0 : (int) count;
  }

  /**
   * Its name.
   *
   * @return null when it was freed
   */
  public String tensorName() {
    TensorInfo info = tensor.info();
    return info == null ? null : info.name();
  }

  /**
   * Its data as an array.
   *
   * @return the very array that was set last, or else a copy: float[] for Float32 and Float16,
   *     int[] for Int32, long[] for Int64, byte[] for other types; an empty one when there is no
   *     data
   */
  public Object getData() {
    return tensor.array();
  }

  /**
   * A copy of its data, of whatever type.
   *
   * @return the bytes, little-endian; empty when there is no data
   */
  public byte[] getByteData() {
    return tensor.bytes();
  }

  /**
   * A copy of its data.
   *
   * @return the numbers; empty when the type is neither Float32 nor Float16, or there is no data
   */
  public float[] getFloatData() {
    return tensor.floats();
  }

  /**
   * A copy of its data.
   *
   * @return the numbers; empty when the type is not Int32, or there is no data
   */
  public int[] getIntData() {
    return tensor.ints();
  }

  /**
   * A copy of its data.
   *
   * @return the numbers; empty when the type is not Int64, or there is no data
   */
  public long[] getLongData() {
    return tensor.longs();
  }

  /**
   * Its data itself, to read results and to write inputs without a copy. A tensor without data gets
   * zeros. The buffer is valid for as long as the program has it, even when the tensor is freed;
   * but after a setData, setShape or resize, or a prediction into it, the tensor may have its data
   * elsewhere. Not to be written to while a prediction with it is under way.
   *
   * @return a direct or heap buffer, little-endian; null when it was freed, or a dim is not known
   */
  public ByteBuffer getByteBuffer() {
    AtomicReference<ByteBuffer> view = new AtomicReference<>();
    failures.did(() -> view.set(tensor.view()));
    return view.get();
  }

  /**
   * Sets the shape. Data stays only if it has as many bytes.
   *
   * @param tensorShape the dims; -1 for one that is not known yet
   * @return whether that was done; false when it is null, makes no sense, or the tensor was freed
   */
  public boolean setShape(int[] tensorShape) {
    return failures.did(() -> tensor.reshape(NewTensor.longs(given("setShape", tensorShape))));
  }

  /**
   * Sets the data, which is copied at once.
   *
   * @param data a direct buffer in little-endian order, all of which is taken, whatever its
   *     position and limit are: its capacity must be {@link #size()}
   * @return whether that was done
   */
  public boolean setData(ByteBuffer data) {
    return failures.did(() -> tensor.copy("setData", given("setData", data)));
  }

  /**
   * Sets the data, whatever its type.
   *
   * @param data {@link #size()} bytes, little-endian; kept, not copied: each prediction takes what
   *     the array has by then
   * @return whether that was done
   */
  public boolean setData(byte[] data) {
    return failures.did(() -> tensor.setBytes(given("setData", data)));
  }

  /**
   * Sets the data of a tensor of type Float32 or Float16; for the latter they are rounded.
   *
   * @param data {@link #elementsNum()} numbers; kept, not copied: each prediction takes what the
   *     array has by then
   * @return whether that was done
   */
  public boolean setData(float[] data) {
    return failures.did(()
                            -> tensor.setNumbers(given("setData", data),
                                DataType.kNumberTypeFloat32, DataType.kNumberTypeFloat16));
  }

  /**
   * Sets the data of a tensor of type Int32.
   *
   * @param data {@link #elementsNum()} numbers; kept, not copied: each prediction takes what the
   *     array has by then
   * @return whether that was done
   */
  public boolean setData(int[] data) {
    return failures.did(() -> tensor.setNumbers(given("setData", data), DataType.kNumberTypeInt32));
  }

  /**
   * Sets the data of a tensor of type Int64.
   *
   * @param data {@link #elementsNum()} numbers; kept, not copied: each prediction takes what the
   *     array has by then
   * @return whether that was done
   */
  public boolean setData(long[] data) {
    return failures.did(() -> tensor.setNumbers(given("setData", data), DataType.kNumberTypeInt64));
  }

  /**
   * A number that says whether it is alive. There is no native object behind it.
   *
   * @return 0 when it was freed, or is empty
   */
  public long getMSTensorPtr() {
    return isFreed() ? MindsporeLite.POINTER_DEFAULT_VALUE : identity;
  }

  /** Frees it; once more does no harm. A prediction that is under way with it goes on. */
  public void free() {
    tensor.free();
  }

  /** The same as {@link #free()}. */
  @Override
  public void close() {
    free();
  }

  /**
   * Why the last call of this thread failed.
   *
   * @return empty when it did not
   */
  public String lastError() {
    return failures.last();
  }

  /**
   * From now on calls that would return false, or null, throw an {@link MSException} instead.
   *
   * @return this
   */
  public MSTensor throwing() {
    failures.setThrowing();
    return this;
  }

  /** Another shape or type: the data is gone. A freed one stays freed. */
  void describe(TensorInfo info) {
    tensor.describe(info);
  }

  /** Takes a result over, with the caller's hold on its memory; a freed one lets go of it. */
  void take(Filled result) {
    tensor.take(result);
  }

  /** The data for a request; {@code what} is its place there. The caller gets a hold of its own. */
  Filled content(String what, Session session) {
    return tensor.content(what, session);
  }

  /** Whether a request would find data. */
  boolean hasData() {
    return tensor.hasData();
  }

  /** Whether it was freed, or is empty. */
  boolean isFreed() {
    return tensor.info() == null;
  }

  private static MSTensor created(Failures.Work check, Supplier<Tensor> make) {
    MSTensor empty = new MSTensor();
    if (!empty.failures.did(check)) {
      return null;
    }
    AtomicReference<Tensor> made = new AtomicReference<>();
    return empty.failures.did(() -> made.set(make.get())) ? new MSTensor(made.get()) : empty;
  }

  private static <T> T given(String function, T argument) {
    if (argument == null) {
      throw Errors.wrong(function + ": got null");
    }
    return argument;
  }
}
