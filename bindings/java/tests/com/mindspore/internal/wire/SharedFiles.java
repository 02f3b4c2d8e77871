package com.mindspore.internal.wire;

import com.mindspore.check.Check;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.PrintWriter;
import java.util.Arrays;

/** Memory as a worker makes it, which Java cannot: a process of Python does. */
final class SharedFiles implements AutoCloseable {
  private static final String PROGRAM = """
      import os, sys
      for line in sys.stdin:
          made = os.memfd_create("test")
          os.ftruncate(made, int(line))
          print(made, flush=True)
      """;

  private final Process process;
  private final PrintWriter sizes;
  private final BufferedReader descriptors;

  SharedFiles() throws IOException {
    String python = System.getenv("MSLITE_PYTHON");
    if (python == null) {
      Check.skip("MSLITE_PYTHON is not set");
    }
    process = new ProcessBuilder(Arrays.asList(python, "-I", "-S", "-c", PROGRAM))
                  .redirectError(ProcessBuilder.Redirect.INHERIT)
                  .start();
    sizes = new PrintWriter(process.outputWriter(), true);
    descriptors = process.inputReader();
  }

  long pid() {
    return process.pid();
  }

  /** A new one. */
  synchronized Made made(int number, long size) {
    sizes.println(size);
    try {
      return new Made(number, Integer.parseInt(descriptors.readLine()), size);
    } catch (IOException error) {
      throw new IllegalStateException(error);
    }
  }

  @Override
  public void close() {
    process.destroy();
    Interrupts.putOff(process::waitFor);
  }
}
