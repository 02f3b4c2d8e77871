package com.mindspore.internal.wire;

import com.mindspore.internal.Forgotten;
import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;

/**
 * A file in memory, which can be unmapped at once. The collector would do that as well, but it only
 * looks at the heap, and may not run for hours while mappings pile up.
 *
 * <p>Java can do so itself from 22 on, by an arena; this is compiled for 17, so it is found by its
 * name. What there was before, Unsafe, prints warnings from 24 on.
 */
final class Mapping {
  private static final Arenas ARENAS = Arenas.found();

  private final ByteBuffer data;
  private final Object segment; // which all views of the data keep; null without an arena
  private final AutoCloseable arena;

  private Mapping(ByteBuffer data, Object segment, AutoCloseable arena) {
    this.data = data;
    this.segment = segment;
    this.arena = arena;
  }

  /** For what is no file: it goes as buffers do. */
  Mapping(ByteBuffer data) {
    this(data, null, null);
  }

  /** All of a file, with every page: the first request would pay for each of them otherwise. */
  static Mapping of(FileChannel file, long size) throws IOException {
    return ARENAS == null ? new Mapping(file.map(FileChannel.MapMode.READ_WRITE, 0, size).load())
                          : ARENAS.map(file, size);
  }

  static boolean hasArenas() {
    return ARENAS != null;
  }

  ByteBuffer data() {
    return data;
  }

  /**
   * Whoever touches the data afterwards gets an exception, or ends the process: only where nobody
   * can any more. False when it was left to the collector.
   */
  boolean unmap() {
    if (arena == null) {
      return Unmapping.free(data);
    }
    close(arena);
    return true;
  }

  /** Leaves it to the collector, which looks for views of it that someone still has. */
  void leave(Runnable then) {
    AutoCloseable last = arena;
    Forgotten.register(segment == null ? data : segment, () -> {
      close(last);
      then.run();
    });
  }

  private static void close(AutoCloseable arena) {
    try {
      if (arena != null) {
        arena.close();
      }
    } catch (Exception error) {
      throw new IllegalStateException("shared memory is still in use", error);
    }
  }

  /** Arena.ofShared, FileChannel.map, MemorySegment.load and .asByteBuffer of Java 22. */
  private record Arenas(Method ofShared, Method map, Method load, Method asByteBuffer) {
    private static final int FIRST = 22;

    /** Null where there are none. */
    static Arenas found() {
      if (Runtime.version().feature() < FIRST) {
        return null;
      }
      try {
        Class<?> arena = Class.forName("java.lang.foreign.Arena");
        Class<?> segment = Class.forName("java.lang.foreign.MemorySegment");
        Method map = FileChannel.class.getMethod(
            "map", FileChannel.MapMode.class, long.class, long.class, arena);
        return new Arenas(arena.getMethod("ofShared"), map, segment.getMethod("load"),
            segment.getMethod("asByteBuffer"));
      } catch (ReflectiveOperationException missing) {
        return null;
      }
    }

    Mapping map(FileChannel file, long size) throws IOException {
      try {
        AutoCloseable arena = (AutoCloseable) ofShared.invoke(null);
        boolean isMapped = false;
        try {
          Object segment = map.invoke(file, FileChannel.MapMode.READ_WRITE, 0L, size, arena);
          load.invoke(segment);
          Mapping made = new Mapping((ByteBuffer) asByteBuffer.invoke(segment), segment, arena);
          isMapped = true;
          return made;
        } finally {
          if (!isMapped) {
            close(arena);
          }
        }
      } catch (InvocationTargetException thrown) {
        if (thrown.getCause() instanceof IOException error) {
          throw error;
        }
        throw new IOException(thrown.getCause());
      } catch (IllegalAccessException impossible) {
        throw new IllegalStateException(impossible);
      }
    }
  }
}
