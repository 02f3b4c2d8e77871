package com.mindspore.internal;

import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;

/** Configuration files: {@code [section]} and {@code key=value} lines go in, sections come out. */
public final class ConfigFile {
  private static final int MOST_LINES = 100_100;
  private static final int MOST_USEFUL_LINES = 100_000;
  private static final int MOST_BYTES_OF_LINE = 2
      << 20; // twice what a text of the protocol may have
  private static final int MOST_SECTIONS = 100; // the original's
  private static final int MOST_ENTRIES = 1000; // of one section

  private ConfigFile() {}

  /**
   * Reads a file. Lines that mean nothing are left out, whatever bytes they have: programs pass
   * model files here. Of two equal keys or sections the first one counts. Paths in it are made
   * absolute.
   */
  public static Map<String, Map<String, String>> read(String name) {
    Path path;
    try {
      path = Path.of(name);
    } catch (InvalidPathException error) { // such as letters that the locale does not have
      throw unreadable(name, error.getReason());
    }
    if (Files.exists(path) && !Files.isRegularFile(path)) { // some of which never end
      throw unreadable(name, "it is no file, but a directory or a device");
    }
    try (InputStream in = new BufferedInputStream(Files.newInputStream(path), 1 << 16)) {
      Map<String, Map<String, String>> sections = parse(name, in);
      Path folder = path.toAbsolutePath().getParent();
      makePathsAbsolute(sections, folder == null ? "" : folder.toString());
      return sections;
    } catch (NoSuchFileException error) {
      throw unreadable(name, "there is no such file");
    } catch (IOException error) {
      throw unreadable(name, error.getMessage());
    }
  }

  /** Entries of {@code over} count before those of {@code base}. */
  public static void merge(
      Map<String, Map<String, String>> over, Map<String, Map<String, String>> base) {
    over.forEach(
        (section, entries)
            -> base.computeIfAbsent(section, name -> new LinkedHashMap<>()).putAll(entries));
  }

  /** Refuses what is one section or entry too many, as the original does. */
  public static void checkRoom(Map<String, Map<String, String>> sections) {
    if (sections.size() > MOST_SECTIONS) {
      throw Errors.wrong("the configuration has " + sections.size() + " sections, at most "
          + MOST_SECTIONS + " are taken");
    }
    sections.forEach((section, entries) -> {
      if (entries.size() > MOST_ENTRIES) {
        throw Errors.wrong("section '" + section + "' has " + entries.size() + " entries, at most "
            + MOST_ENTRIES + " are taken");
      }
    });
  }

  /**
   * Makes absolute what is a path: the worker has a directory of its own. A relative one is looked
   * up in the working directory, then in {@code beside}.
   */
  public static void makePathsAbsolute(Map<String, Map<String, String>> sections, String beside) {
    sections.forEach(
        (section, entries)
            -> entries.replaceAll(
                (key, value)
                    -> isPath(section, key) && !value.isEmpty() ? found(value, beside) : value));
  }

  /** The path as seen from any directory. */
  public static String absolute(String path) {
    // not by Path, which refuses letters that the locale does not have; the worker has no such
    // limit
    return path.isEmpty() || path.startsWith("/") ? path
                                                  : System.getProperty("user.dir") + "/" + path;
  }

  private static String found(String path, String beside) {
    boolean isBeside = !path.startsWith("/") && !beside.isEmpty() && !exists(path);
    return isBeside && exists(beside + "/" + path) ? beside + "/" + path : absolute(path);
  }

  private static boolean exists(String path) {
    try {
      return Files.exists(Path.of(path));
    } catch (InvalidPathException error) {
      return false;
    }
  }

  private static boolean isPath(String section, String key) {
    return key.equals("variable_weights_file")
        || (key.equals("mindir_path") && section.toLowerCase(Locale.ROOT).equals("model_file"));
  }

  private static Map<String, Map<String, String>> parse(String name, InputStream in)
      throws IOException {
    Map<String, Map<String, String>> sections = new LinkedHashMap<>();
    Map<String, String> section = null; // null: lines belong to nothing
    int lines = 0;
    int useful = 0;
    for (byte[] bytes = nextLine(in); bytes != null; bytes = nextLine(in)) {
      boolean saysNothing = bytes.length <= 2 || bytes[0] == '#';
      useful += saysNothing ? 0 : 1;
      if (++lines >= MOST_LINES || useful >= MOST_USEFUL_LINES) {
        throw Errors.file("configuration file '" + name + "' has too many lines, at most "
            + MOST_USEFUL_LINES + " are read");
      }
      String line = saysNothing ? null : text(bytes);
      if (line == null) {
        continue;
      }
      if (line.startsWith("[") && line.endsWith("]")) {
        String title = line.substring(1, line.length() - 1).strip();
        section = sections.containsKey(title) ? null : new LinkedHashMap<>();
        if (section != null) {
          sections.put(title, section);
        }
      } else if (section != null) {
        addEntry(line, section);
      }
    }
    return sections;
  }

  private static void addEntry(String line, Map<String, String> section) {
    int equals = line.indexOf('=');
    if (equals < 0) {
      return;
    }
    String key = line.substring(0, equals).strip();
    String value = line.substring(equals + 1).strip();
    if (value.length() >= 2 && value.startsWith("\"") && value.endsWith("\"")) {
      value = value.substring(1, value.length() - 1);
    }
    if (!key.isEmpty()) {
      section.putIfAbsent(key, value);
    }
  }

  /**
   * The next line, trimmed; no more is kept of it than could mean something. Null: there is none.
   */
  private static byte[] nextLine(InputStream in) throws IOException {
    int next = in.read();
    if (next < 0) {
      return null;
    }
    ByteArrayOutputStream line = new ByteArrayOutputStream();
    for (; next >= 0 && next != '\n'; next = in.read()) {
      boolean isLeading = line.size() == 0 && isBlank(next);
      if (!isLeading && line.size() < MOST_BYTES_OF_LINE) {
        line.write(next);
      }
    }
    byte[] bytes = line.toByteArray();
    int end = bytes.length;
    while (end > 0 && isBlank(bytes[end - 1])) {
      --end;
    }
    return Arrays.copyOf(bytes, end);
  }

  private static boolean isBlank(int letter) {
    return letter == ' ' || (letter >= '\t' && letter <= '\r');
  }

  /** Null where it is not UTF-8, or could not be sent for its length. */
  private static String text(byte[] bytes) {
    if (bytes.length >= MOST_BYTES_OF_LINE) {
      return null;
    }
    try {
      return StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(bytes)).toString();
    } catch (CharacterCodingException error) {
      return null;
    }
  }

  private static RuntimeException unreadable(String name, String why) {
    return Errors.file("configuration file '" + name + "' cannot be read: " + why);
  }
}
