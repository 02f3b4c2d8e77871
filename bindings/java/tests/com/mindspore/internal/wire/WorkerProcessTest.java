package com.mindspore.internal.wire;

import com.mindspore.MSException;
import com.mindspore.check.Check;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/** How a worker is found, started and ended. */
public final class WorkerProcessTest {
  private WorkerProcessTest() {}

  public static void withoutARuntimeItIsToldWhereItWasLookedFor() throws Exception {
    Map<String, String> variables =
        Map.of("MSLITE_PYTHON", "", "MSLITE_SOCKET", "", "PATH", "/no/such:");
    Process probe = Probe.started(variables, List.of(), "return");
    String said = Probe.said(probe);
    for (String word :
        List.of("EngineUnavailableError", "mslite.python", "MSLITE_PYTHON", "PATH", "pip")) {
      Check.contains(said, word);
    }
    Check.equal(0, probe.waitFor());
  }

  public static void aRuntimeThatCannotBeStartedIsNamed() {
    MSException error = started("/no/such/python");
    Check.equal("EngineUnavailableError", error.kind());
    Check.contains(error.getMessage(), "'/no/such/python -P -m mindspore_lite worker --private'");
    Check.contains(error.getMessage(), "set MSLITE_PYTHON");
  }

  public static void aRuntimeThatEndsAtOnceIsToldWithItsStatus() {
    MSException error = started("false");
    Check.equal("EngineUnavailableError", error.kind());
    Check.contains(error.getMessage(), "ended before it answered (exit status 1)");
    Check.contains(error.getMessage(), "Is it Python 3.11 or newer, with mslite installed?");
  }

  public static void aProgramThatIsNoWorkerIsEnded() throws Exception {
    Path folder = Files.createTempDirectory("mslite-start");
    Path script = folder.resolve("worker");
    Files.writeString(script,
        "#!/bin/sh\necho $$ > " + folder.resolve("pid")
            + ("\necho mslite worker 1 listens on /no/such/mslite-x/worker.sock\nexec sleep "
                + "600\n"));
    Files.setPosixFilePermissions(script, PosixFilePermissions.fromString("rwx------"));
    MSException error = started(script.toString());
    Check.equal("WorkerDiedError", error.kind());
    Check.contains(error.getMessage(), "does not take the connection");
    long pid = Long.parseLong(Files.readString(folder.resolve("pid")).strip());
    Check.that(ProcessHandle.of(pid).isEmpty(), "it still runs");
    SessionTest.run("rm", "-r", folder.toString());
  }

  public static void noWorkerIsWhereASocketIsNot() {
    for (String path : List.of("/no/such/mslite.sock", "/dev/null")) {
      MSException error = Check.throwsA(MSException.class, () -> Link.attached(path));
      Check.equal("EngineUnavailableError", error.kind());
      Check.contains(error.getMessage(), "'" + path + "'");
      Check.contains(error.getMessage(), "mslite worker --socket");
    }
  }

  public static void howeverAProgramEndsItsWorkerAndTheDirectoryGo() {
    Digits.build(); // or skips
    List<String> endings = List.of("exit", "return", "wait");
    Check.threads(endings.size(), i -> {
      Process probe = Probe.started(Map.of(), List.of(), endings.get(i));
      String[] words = Probe.said(probe).split(" ");
      if (endings.get(i).equals("wait")) {
        probe.destroyForcibly();
      }
      Check.that(probe.waitFor(120, TimeUnit.SECONDS), "the program does not end");
      ProcessHandle.of(Long.parseLong(words[0]))
          .ifPresent(worker -> worker.onExit().orTimeout(120, TimeUnit.SECONDS).join());
      Check.that(!Files.exists(Path.of(words[1]).getParent()), words[1] + " is still there");
    });
  }

  private static MSException started(String python) {
    String before = System.getProperty("mslite.python");
    System.setProperty("mslite.python", python);
    try {
      return Check.throwsA(MSException.class, Link::started);
    } finally {
      if (before == null) {
        System.clearProperty("mslite.python");
      } else {
        System.setProperty("mslite.python", before);
      }
    }
  }
}
