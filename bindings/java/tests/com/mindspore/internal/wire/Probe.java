package com.mindspore.internal.wire;

import com.mindspore.MSException;
import com.mindspore.internal.BuildRequest;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** A program of its own that uses a worker: tests start it with another environment. */
public final class Probe {
  private Probe() {}

  /** Prints what came of it, and ends as the first argument says. */
  public static void main(String[] arguments) throws IOException {
    try {
      Session session = Session.current();
      if (arguments[0].equals("build")) {
        BuildRequest request = Digits.build();
        request.path = arguments[1] + "/mod\u00e8le.mindir";
        session.close(session.build(request).model());
      }
      System.out.println(session.link.pid() + " " + session.link.path);
    } catch (MSException error) {
      System.out.println(error.kind() + ": " + error.getMessage());
    }
    if (arguments[0].equals("exit")) {
      System.exit(0);
    }
    if (arguments[0].equals("wait")) {
      System.in.read(); // for the end of the test, which kills this
    }
  }

  /** Starts it; of the variables, those without a value are removed. */
  static Process started(Map<String, String> variables, List<String> options, String... arguments) {
    List<String> command = new ArrayList<>();
    command.add(System.getProperty("java.home") + "/bin/java");
    command.addAll(List.of("-Xshare:auto", "-XX:TieredStopAtLevel=1", "-cp"));
    command.add(System.getProperty("java.class.path"));
    command.addAll(options);
    command.add(Probe.class.getName());
    command.addAll(List.of(arguments));
    ProcessBuilder builder = new ProcessBuilder(command);
    variables.forEach((name, value) -> {
      builder.environment().remove(name);
      if (!value.isEmpty()) {
        builder.environment().put(name, value);
      }
    });
    try {
      return builder.redirectError(ProcessBuilder.Redirect.INHERIT).start();
    } catch (IOException error) {
      throw new IllegalStateException(error);
    }
  }

  /** What it prints first. */
  static String said(Process process) {
    try {
      return String.valueOf(process.inputReader().readLine());
    } catch (IOException error) {
      throw new IllegalStateException(error);
    }
  }
}
