package com.mindspore.internal.wire;

import com.mindspore.internal.Description;
import com.mindspore.internal.TensorInfo;
import java.util.HashMap;
import java.util.Map;

/** The models that are there, and how much room the outputs of each need outside the frame. */
final class Rooms {
  private final Map<Integer, Long> rooms = new HashMap<>();

  /** A model that was built; it is there until it is removed. */
  synchronized void add(int model, Description description) {
    rooms.put(model, roomOf(description));
  }

  /** Whether it was there. */
  synchronized boolean remove(int model) {
    return rooms.remove(model) != null;
  }

  /** Bytes; 0: none, or nobody knows before an answer. */
  synchronized long of(int model) {
    return rooms.getOrDefault(model, 0L);
  }

  /** Nothing where the model was closed meanwhile. */
  synchronized void set(int model, long bytes) {
    rooms.replace(model, bytes);
  }

  void set(int model, Description description) {
    set(model, roomOf(description));
  }

  private static long roomOf(Description description) {
    long room = 0;
    for (TensorInfo output : description.outputs()) {
      long bytes = WireTensor.bytesOf(output);
      if (bytes < 0 || bytes > Limits.BLOCK - room) {
        return 0;
      }
      if (bytes > Limits.INLINE) {
        room = Limits.aligned(room + bytes);
      }
    }
    return room;
  }
}
