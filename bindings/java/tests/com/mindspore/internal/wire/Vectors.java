package com.mindspore.internal.wire;

import com.mindspore.check.Check;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.stream.Stream;

/** The test vectors of the protocol, as their README tells; MSLITE_VECTORS is their folder. */
final class Vectors {
  private Vectors() {}

  record Field(byte[] bytes, String type, String name, String value) {}

  /** All of one file. */
  record Vector(String name, List<Part> parts) {}

  /** One greeting or frame. */
  static final class Part {
    final String side;
    final List<Field> fields = new ArrayList<>();
    String verdict;
    String reason;

    Part(String side) {
      this.side = side;
    }

    boolean isFrame() {
      return fields.stream().anyMatch(field -> field.name().equals("frame.length"));
    }

    Field of(String name) {
      return fields.stream().filter(field -> field.name().equals(name)).findFirst().orElseThrow();
    }

    long number(String name) {
      String value = of(name).value();
      return value.startsWith("-") ? Long.parseLong(value) : Long.parseUnsignedLong(value);
    }

    /** Of a text or a blob. */
    byte[] blob(String name) {
      byte[] bytes = of(name).bytes();
      return Arrays.copyOfRange(bytes, 4, bytes.length);
    }

    String text(String name) {
      return new String(blob(name), StandardCharsets.UTF_8);
    }

    long[] dims(String name) {
      String value = of(name).value();
      return value.isEmpty() ? new long[0]
                             : Stream.of(value.split(",")).mapToLong(Long::parseLong).toArray();
    }

    byte[] encoded() {
      int size = fields.stream().mapToInt(field -> field.bytes().length).sum();
      ByteBuffer all = ByteBuffer.allocate(size);
      fields.forEach(field -> all.put(field.bytes()));
      return all.array();
    }

    /** What comes after the header of a frame. */
    byte[] body() {
      byte[] all = encoded();
      return Arrays.copyOfRange(all, Frame.HEADER_BYTES, all.length);
    }
  }

  static List<Vector> all() {
    String folder = System.getenv("MSLITE_VECTORS");
    if (folder == null) {
      Check.skip("MSLITE_VECTORS is not set");
    }
    try (Stream<Path> files = Files.list(Path.of(folder))) {
      List<Vector> found = files.filter(file -> file.toString().endsWith(".txt"))
                               .sorted()
                               .map(Vectors::read)
                               .toList();
      Check.that(!found.isEmpty(), "there are no vectors in " + folder);
      return found;
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  /** Those whose names begin so. */
  static List<Vector> named(String prefix) {
    List<Vector> found = all().stream().filter(one -> one.name().startsWith(prefix)).toList();
    Check.that(!found.isEmpty(), "there are no vectors " + prefix);
    return found;
  }

  static Part first(String name) {
    return named(name + ".txt").get(0).parts().get(0);
  }

  private static Vector read(Path file) {
    Vector vector = new Vector(file.getFileName().toString(), new ArrayList<>());
    try {
      for (String line : Files.readAllLines(file, StandardCharsets.US_ASCII)) {
        if (!line.isEmpty() && !line.startsWith("#")) {
          add(line, vector.parts());
        }
      }
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
    return vector;
  }

  private static void add(String line, List<Part> parts) {
    String[] words = line.split(" ", 4);
    if (words[0].equals("from")) {
      parts.add(new Part(words[1]));
    } else if (words[0].equals("verdict")) {
      Part part = parts.get(parts.size() - 1);
      part.verdict = words[1];
      part.reason =
          line.substring(Math.min(line.length(), "verdict ".length() + words[1].length()));
      part.reason = part.reason.strip();
    } else {
      String value = words.length > 3 ? words[3] : "";
      Field field = new Field(HexFormat.of().parseHex(words[0]), words[1], words[2], value);
      parts.get(parts.size() - 1).fields.add(field);
    }
  }
}
