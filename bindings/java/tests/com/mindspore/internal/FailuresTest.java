package com.mindspore.internal;

import com.mindspore.MSException;
import com.mindspore.check.Check;
import com.mindspore.check.Logged;
import java.net.URL;
import java.net.URLClassLoader;
import java.util.List;

/** Tests of Failures. */
public final class FailuresTest {
  private FailuresTest() {}

  private static void fail() {
    throw Errors.wrong("got 7, wanted 8");
  }

  public static void aFailureIsFalseAndALineInTheLog() {
    Failures failures = new Failures();
    try (Logged log = new Logged()) {
      Check.that(!failures.did(FailuresTest::fail), "it failed");
      Check.equal(List.of("SEVERE: got 7, wanted 8"), log.lines());
    }
    Check.equal("got 7, wanted 8", failures.last());
  }

  public static void successClearsTheLastError() {
    Failures failures = new Failures();
    failures.did(FailuresTest::fail);
    Check.that(failures.did(() -> {}), "it did not fail");
    Check.equal("", failures.last());
  }

  public static void eachThreadHasAnErrorOfItsOwn() {
    Failures failures = new Failures();
    failures.did(FailuresTest::fail);
    Check.threads(1, i -> Check.equal("", failures.last()));
    Check.equal("got 7, wanted 8", failures.last());
  }

  public static void whoAskedForExceptionsGetsThemAndNoLine() {
    Failures failures = new Failures();
    failures.setThrowing();
    try (Logged log = new Logged()) {
      MSException error = Check.throwsA(MSException.class, () -> failures.did(FailuresTest::fail));
      Check.equal("ValueError", error.kind());
      Check.equal(-3, error.code());
      Check.equal(List.of(), log.lines());
    }
    Check.equal("got 7, wanted 8", failures.last());
  }

  /** A program where nothing has failed yet. */
  private static final class Fresh extends URLClassLoader {
    Fresh(URL classes) {
      super(new URL[] {classes}, null);
    }

    boolean has(Class<?> type) {
      return findLoadedClass(type.getName()) != null;
    }
  }

  public static void whatAProgramSetsAtTheLoggerIsKeptThoughNothingFailsYet() throws Exception {
    URL classes = Failures.class.getProtectionDomain().getCodeSource().getLocation();
    try (Fresh fresh = new Fresh(classes)) {
      Class.forName(Failures.class.getName(), true, fresh);
      Check.that(fresh.has(Log.class), "nobody has the logger");
    }
  }

  public static void whatNobodyExpectedIsToldAsWell() {
    Failures failures = new Failures();
    Check.that(!failures.did(() -> { throw new IllegalStateException("odd"); }), "it failed");
    Check.contains(failures.last(), "odd");
    Check.that(!failures.did(() -> { throw new OutOfMemoryError("heap"); }), "it failed");
    Check.contains(failures.last(), "no memory left");
  }
}
