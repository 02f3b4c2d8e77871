package com.mindspore.internal.wire;

import com.mindspore.internal.Errors;
import java.io.File;
import java.util.List;
import java.util.stream.Stream;

/** How a worker is found. */
final class WorkerCommand {
  private static final List<String> ARGUMENTS = List.of("worker", "--private");

  private WorkerCommand() {}

  /** A system property, or else an environment variable; empty when neither is set. */
  static String setting(String property, String variable) {
    String value = System.getProperty(property);
    if (value == null || value.isEmpty()) {
      value = System.getenv(variable);
    }
    return value == null ? "" : value;
  }

  /** The words of the command that starts one. */
  static List<String> found() {
    String python = setting("mslite.python", "MSLITE_PYTHON");
    if (!python.isEmpty()) {
      // -P: no module of the working directory stands in for one of the runtime
      return joined(List.of(python, "-P", "-m", "mindspore_lite"));
    }
    String program = onPath("mslite");
    if (program != null) {
      return joined(List.of(program));
    }
    throw Errors.unavailable(
        "the runtime is not found: neither the system property mslite.python nor MSLITE_PYTHON is"
        + " set, and there is no 'mslite' on PATH; install it (pip install mslite) and put its"
        + " command on PATH, or set one of them to the Python interpreter that it is installed"
        + " for");
  }

  private static List<String> joined(List<String> program) {
    return Stream.of(program, ARGUMENTS).flatMap(List::stream).toList();
  }

  private static String onPath(String name) {
    String folders = System.getenv("PATH");
    if (folders == null) {
      return null;
    }
    for (String folder : folders.split(File.pathSeparator)) {
      File file = new File(folder.isEmpty() ? "." : folder, name);
      if (file.isFile() && file.canExecute()) {
        return file.getPath();
      }
    }
    return null;
  }
}
