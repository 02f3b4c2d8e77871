package com.mindspore.internal.wire;

import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;

/**
 * Gives the memory of a direct or mapped buffer back at once, before Java had arenas for that; see
 * Mapping. Later ones leave direct buffers to the collector.
 */
final class Unmapping {
  // of the module jdk.unsupported, which every JDK from 9 on has, but not every runtime image
  private static final Object UNSAFE;
  private static final Method INVOKE_CLEANER;

  static {
    Object unsafe = null;
    Method invokeCleaner = null;
    try {
      Class<?> type = Class.forName("sun.misc.Unsafe");
      Field field = type.getDeclaredField("theUnsafe");
      field.setAccessible(true);
      unsafe = field.get(null);
      invokeCleaner = type.getMethod("invokeCleaner", ByteBuffer.class);
    } catch (ReflectiveOperationException | RuntimeException missing) {
      invokeCleaner = null;
    }
    UNSAFE = unsafe;
    INVOKE_CLEANER = invokeCleaner;
  }

  private Unmapping() {}

  /**
   * Whoever touches the buffer, or a view of it, afterwards ends the process: only for one that
   * nobody can reach any more. It is one that was made, no slice nor duplicate. False when that is
   * left to the collector.
   */
  static boolean free(ByteBuffer buffer) {
    if (INVOKE_CLEANER == null || Mapping.hasArenas() || !buffer.isDirect()) {
      return false;
    }
    try {
      INVOKE_CLEANER.invoke(UNSAFE, buffer);
      return true;
    } catch (ReflectiveOperationException | RuntimeException impossible) {
      return false;
    }
  }
}
