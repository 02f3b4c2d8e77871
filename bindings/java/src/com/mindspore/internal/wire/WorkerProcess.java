package com.mindspore.internal.wire;

import com.mindspore.MSException;
import com.mindspore.internal.Errors;
import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The worker as a child of this process. It ends by itself when this process does, or closes its
 * connections; when it was killed, the directory that it made is removed here.
 */
final class WorkerProcess {
  private static final long START_MS = 120_000; // imports from a cold disk take a while
  private static final long END_MS = 10_000; // to end when it is told so
  private static final long GONE_MS = 2000; // between the end of its output and its own
  private static final int SIGNALS = 128; // exit codes above are signals, as a shell has it
  private static final Pattern LISTENS =
      Pattern.compile("mslite worker \\d+ listens on (/\\p{Print}+)");
  private static final Pattern PRIVATE = Pattern.compile("/mslite-[^/]+/worker\\.sock$");

  private final Process process;
  private final String command;
  private final CompletableFuture<Path> socket = new CompletableFuture<>(); // null: it never told

  private WorkerProcess(Process process, String command) {
    this.process = process;
    this.command = command;
  }

  /** Starts the command. */
  static WorkerProcess started(List<String> words) {
    String command = String.join(" ", words);
    Process process;
    try {
      process = new ProcessBuilder(words)
                    .redirectInput(new File("/dev/null"))
                    .redirectError(ProcessBuilder.Redirect.INHERIT)
                    .start();
    } catch (IOException error) {
      throw Errors.unavailable("the worker cannot be started by '" + command
          + "': " + error.getMessage()
          + "; set MSLITE_PYTHON (or the system property mslite.python) to the Python"
          + " interpreter that mslite is installed for, or put the command 'mslite' on PATH");
    }
    WorkerProcess made = new WorkerProcess(process, command);
    try {
      Thread thread = new Thread(made::lookAfter, "mslite-worker-output");
      thread.setDaemon(true);
      thread.start();
    } catch (OutOfMemoryError error) { // which is how Java says that there is no thread
      made.end();
      throw Errors.resource("no thread can be had to look after the worker: " + error.getMessage());
    }
    return made;
  }

  String command() {
    return command;
  }

  /** Where it listens; waits until it does. Lost when it will not. */
  Path socket() throws Lost {
    Deadline due = Deadline.in(START_MS);
    Path found;
    try {
      found = Interrupts.putOff(() -> told(due));
    } catch (TimeoutException error) {
      throw new Lost("did not listen within " + START_MS / 1000 + " s");
    }
    if (found == null) {
      throw new Lost("never told where it listens");
    }
    return found;
  }

  private Path told(Deadline due) throws InterruptedException, TimeoutException {
    try {
      return socket.get(due.leftMs(), TimeUnit.MILLISECONDS);
    } catch (ExecutionException impossible) {
      throw new IllegalStateException(impossible);
    }
  }

  /** The error for one that was started and did not greet; it is ended. */
  MSException unusable(Lost lost) {
    String ending = ending(GONE_MS);
    end();
    String what =
        ending.isEmpty() ? lost.getMessage() : "ended before it answered (" + ending + ")";
    String words = "the worker was started by '" + command + "' but " + what
        + "; what it said is on stderr. Is it Python 3.11 or newer, with mslite installed? Try '"
        + command + "' in a terminal: it should tell where it listens";
    return ending.startsWith("exit status") ? Errors.unavailable(words) : Errors.died(words);
  }

  /**
   * How it ended, as "exit status 1" or "killed by signal 9"; waits so long, and is empty when it
   * did not.
   */
  String ending(long limitMs) {
    Deadline due = Deadline.in(limitMs);
    if (!Interrupts.putOff(() -> process.waitFor(due.leftMs(), TimeUnit.MILLISECONDS))) {
      return "";
    }
    int code = process.exitValue();
    return code > SIGNALS ? "killed by signal " + (code - SIGNALS) : "exit status " + code;
  }

  /** Ends it, if it has not, and waits. */
  void end() {
    process.destroy(); // it cleans up after itself
    if (ending(END_MS).isEmpty()) {
      process.destroyForcibly();
      Interrupts.putOff(process::waitFor);
    }
    removeLeftOver();
  }

  /** Ends it at once, without waiting. */
  void kill() {
    process.destroyForcibly();
  }

  /** Reads what it says for as long as it lives. */
  private void lookAfter() {
    try (BufferedReader lines = process.inputReader()) {
      lines.lines().forEach(this::hear);
    } catch (IOException | UncheckedIOException error) {
      // its end, too
    }
    socket.complete(null);
    Interrupts.putOff(process::waitFor);
    removeLeftOver();
  }

  private void hear(String line) {
    Matcher found = LISTENS.matcher(line);
    if (socket.isDone() || !found.matches()) {
      System.err.println(line);
    } else {
      socket.complete(Path.of(found.group(1)));
    }
  }

  /** What one that was killed has left; it is ours, as it was made for us. */
  private void removeLeftOver() {
    Path path = socket.getNow(null);
    if (path == null || !PRIVATE.matcher(path.toString()).find()) {
      return;
    }
    try {
      Files.deleteIfExists(path);
      Files.deleteIfExists(path.getParent());
    } catch (IOException error) {
      // there is something else in it: not ours, then
    }
  }
}
