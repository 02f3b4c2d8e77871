package com.mindspore.internal.wire;

import com.mindspore.MSException;
import com.mindspore.internal.Errors;
import com.mindspore.internal.TensorInfo;
import com.mindspore.internal.Types;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

/**
 * A tensor as it stands in a message: its bytes in the frame, or in a block, or it has none.
 *
 * @param data in the frame, from position to limit; else null
 * @param place in a block; else null
 */
record WireTensor(TensorInfo info, ByteBuffer data, Place place) {
  private static final int MIN_BYTES = 9; // that it takes in a message
  private static final int NO_DATA = 0;
  private static final int IN_FRAME = 1;
  private static final int IN_BLOCK = 2;

  void write(Writer out) {
    out.text(info.name(), Limits.NAME);
    out.u16(info.type());
    out.dims(info.shape());
    if (data != null) {
      out.u8(IN_FRAME);
      out.blob(data);
    } else if (place != null) {
      out.u8(IN_BLOCK);
      out.u32(place.block());
      out.u64(place.offset());
      out.u64(place.size());
    } else {
      out.u8(NO_DATA);
    }
  }

  static void writeAll(Writer out, List<WireTensor> tensors, String what) {
    out.count(tensors.size(), what);
    for (WireTensor tensor : tensors) {
      tensor.write(out);
    }
  }

  static List<WireTensor> readAll(Reader in, String what) {
    int count = in.count(what, MIN_BYTES);
    List<WireTensor> tensors = new ArrayList<>(count);
    for (int i = 0; i < count; ++i) {
      tensors.add(read(in));
    }
    return tensors;
  }

  /** Its sizes agree with each other afterwards. */
  static WireTensor read(Reader in) {
    TensorInfo info = readInfo(in);
    int where = in.u8("the place of a tensor");
    ByteBuffer data = null;
    Place place = null;
    long size;
    switch (where) {
      case NO_DATA:
        return new WireTensor(info, null, null);
      case IN_FRAME:
        data = in.blob("the data of a tensor", Limits.BODY);
        size = data.remaining();
        break;
      case IN_BLOCK:
        String what = "the place of a tensor";
        place = new Place(in.u32(what), in.u64(what), in.u64(what));
        size = place.size();
        break;
      default:
        throw bad(info, "has its data at place " + where + ", wanted 0, 1 or 2");
    }
    if (size < 0 || size != bytesOf(info)) {
      throw bad(info,
          "came with " + Long.toUnsignedString(size)
              + " bytes of data, which its shape does not have");
    }
    return new WireTensor(info, data, place);
  }

  private static TensorInfo readInfo(Reader in) {
    String name = in.text("the name of a tensor", Limits.NAME);
    int type = in.u16("the type of a tensor");
    TensorInfo info = new TensorInfo(name, type, in.dims("the shape of a tensor"));
    long bytes = Types.itemBytes(type);
    if (bytes == 0) {
      throw bad(info, "has elements of type " + type + ", which is unknown");
    }
    long[] shape = info.shape();
    boolean isAnyRank = shape.length == 1 && shape[0] == -2;
    for (long dim : shape) {
      if (dim < -1 && !isAnyRank) {
        throw bad(info, "has a dim of " + dim + ", wanted -1 or more");
      }
      if (Math.max(dim, 1) > Limits.TENSOR / bytes) {
        throw bad(info, "is larger than any can be");
      }
      bytes *= Math.max(dim, 1);
    }
    return info;
  }

  /** Bytes of a tensor; -1 when a dim is open, or there is no such type, or none so large. */
  static long bytesOf(TensorInfo info) {
    long bytes = Types.itemBytes(info.type());
    boolean isEmpty = false;
    if (bytes == 0) {
      return -1;
    }
    for (long dim : info.shape()) {
      if (dim < 0 || dim > Limits.TENSOR / bytes) {
        return -1;
      }
      isEmpty |= dim == 0;
      bytes *= Math.max(dim, 1);
    }
    return isEmpty ? 0 : bytes;
  }

  private static MSException bad(TensorInfo info, String what) {
    return Errors.wire("the worker's tensor '" + info.name() + "' " + what);
  }
}
