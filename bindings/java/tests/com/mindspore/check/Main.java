package com.mindspore.check;

import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.logging.Logger;
import java.util.stream.Stream;

/**
 * Runs tests: every {@code public static void} method without parameters of every class XxxTest
 * that lies where this one does. Arguments choose by a part of the name; {@code --list} lists them.
 */
public final class Main {
  private static final long LIMIT_S = 600; // for one test, on a busy machine

  private static final Logger LOG = Logger.getLogger("com.mindspore");

  private Main() {}

  /** One line per test; exits with 1 when one failed, or none matched. */
  public static void main(String[] arguments) throws Exception {
    List<String> parts = new ArrayList<>(List.of(arguments));
    boolean isList = parts.remove("--list");
    List<Method> chosen = new ArrayList<>();
    for (Method test : found()) {
      if (parts.isEmpty() || parts.stream().anyMatch(name(test)::contains)) {
        chosen.add(test);
      }
    }
    if (chosen.isEmpty()) {
      System.out.println("no test matches " + parts);
      System.exit(1);
    }
    LOG.setUseParentHandlers(false); // tests provoke failures: the log of all would only confuse
    int failed = 0;
    for (Method test : chosen) {
      if (isList) {
        System.out.println(name(test));
      } else if (!passed(test)) {
        ++failed;
      }
    }
    if (!isList) {
      System.out.println(chosen.size() + " tests, " + failed + " failed");
    }
    System.exit(failed == 0 ? 0 : 1);
  }

  private static boolean passed(Method test) throws InterruptedException {
    System.out.print(name(test) + " ... ");
    System.out.flush();
    CountDownLatch isDone = new CountDownLatch(1);
    Thread watch = new Thread(() -> watch(isDone), "test-watch");
    watch.setDaemon(true);
    watch.start();
    boolean isPassed = true;
    try {
      test.invoke(null);
      System.out.println("ok");
    } catch (InvocationTargetException thrown) {
      Throwable error = thrown.getCause();
      if (error instanceof Check.Skipped) {
        System.out.println("skipped: " + error.getMessage());
      } else {
        isPassed = false;
        System.out.println("FAILED");
        error.printStackTrace(System.out);
      }
    } catch (IllegalAccessException error) {
      isPassed = false;
      System.out.println("FAILED: the class is not public");
    } finally {
      Thread.interrupted(); // the next one is not to suffer from what this one left
      isDone.countDown();
      watch.join();
    }
    return isPassed;
  }

  private static void watch(CountDownLatch isDone) {
    try {
      if (isDone.await(LIMIT_S, TimeUnit.SECONDS)) {
        return;
      }
    } catch (InterruptedException error) {
      return; // nobody does
    }
    System.out.println("FAILED: it takes longer than " + LIMIT_S + " s; all threads:");
    for (Map.Entry<Thread, StackTraceElement[]> thread : Thread.getAllStackTraces().entrySet()) {
      System.out.println(thread.getKey());
      for (StackTraceElement line : thread.getValue()) {
        System.out.println("    at " + line);
      }
    }
    System.out.flush();
    Runtime.getRuntime().halt(1);
  }

  private static String name(Method test) {
    return test.getDeclaringClass().getSimpleName() + "." + test.getName();
  }

  private static List<Method> found() throws IOException, URISyntaxException {
    Path root = Path.of(Main.class.getProtectionDomain().getCodeSource().getLocation().toURI());
    List<Method> tests = new ArrayList<>();
    try (Stream<Path> files = Files.walk(root)) {
      files.map(file -> root.relativize(file).toString())
          .filter(file -> file.endsWith("Test.class"))
          .forEach(file -> tests.addAll(testsOf(file)));
    }
    tests.sort(Comparator.comparing(Main::name));
    return tests;
  }

  private static List<Method> testsOf(String file) {
    String name = file.substring(0, file.length() - ".class".length()).replace('/', '.');
    List<Method> tests = new ArrayList<>();
    try {
      for (Method method : Class.forName(name).getDeclaredMethods()) {
        int modifiers = method.getModifiers();
        if (Modifier.isPublic(modifiers) && Modifier.isStatic(modifiers)
            && method.getReturnType() == void.class&& method.getParameterCount() == 0) {
          tests.add(method);
        }
      }
    } catch (ClassNotFoundException error) {
      throw new IllegalStateException(error);
    }
    return tests;
  }
}
