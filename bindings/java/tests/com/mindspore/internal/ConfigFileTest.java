package com.mindspore.internal;

import com.mindspore.MSException;
import com.mindspore.check.Check;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;

public final class ConfigFileTest {
  private ConfigFileTest() {}

  private static Map<String, Map<String, String>> read(byte[] content) throws IOException {
    Path file = Files.createTempFile("mslite-test", ".ini");
    try {
      Files.write(file, content);
      return ConfigFile.read(file.toString());
    } finally {
      Files.delete(file);
    }
  }

  private static Map<String, Map<String, String>> read(String content) throws IOException {
    return read(content.getBytes(StandardCharsets.UTF_8));
  }

  public static void readsSectionsAndEntries() throws IOException {
    Check.equal(Map.of("one", Map.of("a", "1", "b", "x = y"), "two", Map.of("\u540d", "\u503c")),
        read("lost=1\n[one]\r\n a = 1 \n# c=3\nb=\"x = y\"\n\n[ two "
            + "]\n\u540d=\u503c\nnothing\n=5\n"));
  }

  public static void theFirstOfTwoCounts() throws IOException {
    Check.equal(Map.of("one", Map.of("a", "1"), "two", Map.of()),
        read("[one]\na=1\na=2\n[two]\n[one]\na=3\n"));
  }

  public static void whateverBytesDoNoHarm() throws IOException {
    byte[] bytes = new byte[1 << 16];
    new java.util.Random(1).nextBytes(bytes);
    read(bytes);
    Check.equal(Map.of(), read(new byte[3 << 20])); // one endless line
    Check.equal(
        Map.of("a", Map.of("c", "2")), read("[a]\nb=".concat("1".repeat(3 << 20)) + "\nc=2"));
  }

  public static void tooManyLinesAreRefused() throws IOException {
    MSException error = Check.throwsA(MSException.class, () -> {
      try {
        read("[a]\n"
            + "b=1\n".repeat(100_001));
      } catch (IOException wrong) {
        throw new AssertionError(wrong);
      }
    });
    Check.contains(error.getMessage(), "too many lines");
  }

  public static void whatCannotBeReadIsTold() {
    for (String name : new String[] {"/no/such.ini", "/proc", "/dev/zero", "", "a\0b"}) {
      MSException error = Check.throwsA(MSException.class, () -> ConfigFile.read(name));
      Check.equal("ModelFileError", error.kind());
      Check.contains(error.getMessage(), "'" + name + "' cannot be read");
    }
  }

  public static void pathsAreLookedForInTheWorkingDirectoryThenBesideTheFile() throws IOException {
    Path folder = Files.createTempDirectory("mslite-test");
    Path names = folder.resolve("names.txt");
    Path file = folder.resolve("c.ini");
    try {
      Files.createFile(names);
      Files.writeString(file,
          "[a]\nvariable_weights_file=names.txt\nother=names.txt\n"
              + "[Model_File]\nmindir_path=no/such.mindir\n");
      Map<String, Map<String, String>> read = ConfigFile.read(file.toString());
      Check.equal(names.toString(), read.get("a").get("variable_weights_file"));
      Check.equal("names.txt", read.get("a").get("other"));
      Check.equal(System.getProperty("user.dir") + "/no/such.mindir",
          read.get("Model_File").get("mindir_path"));
    } finally {
      Files.delete(names);
      Files.delete(file);
      Files.delete(folder);
    }
  }

  public static void oneSectionOrEntryTooManyIsRefused() {
    Map<String, Map<String, String>> sections = new LinkedHashMap<>();
    for (int i = 0; i < 100; ++i) {
      sections.put("s" + i, new LinkedHashMap<>());
    }
    for (int i = 0; i < 1000; ++i) {
      sections.get("s7").put("k" + i, "");
    }
    ConfigFile.checkRoom(sections);
    sections.get("s7").put("more", "");
    Check.contains(
        Check.throwsA(MSException.class, () -> ConfigFile.checkRoom(sections)).getMessage(),
        "section 's7' has 1001 entries");
    sections.get("s7").clear();
    sections.put("more", Map.of());
    Check.contains(
        Check.throwsA(MSException.class, () -> ConfigFile.checkRoom(sections)).getMessage(),
        "101 sections");
  }
}
