package com.mindspore.internal;

import com.mindspore.MSException;
import com.mindspore.check.Check;
import com.mindspore.internal.wire.Session;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Configurations mean here what they mean in Python: vectors.txt, through a worker. */
public final class SettingsTest {
  private SettingsTest() {}

  private record Case(String name, Map<String, String> parts) {
    String part(String title) {
      return parts.getOrDefault(title, "");
    }
  }

  public static void aConfigurationSettlesAsItDoesInPython() throws IOException {
    List<Case> cases = cases();
    Check.that(cases.size() >= 16, "only " + cases.size() + " cases");
    Session session = Session.current();
    for (Case one : cases) {
      BuildRequest request = request(one);
      if (one.parts().containsKey("error")) {
        MSException wrong = Check.throwsA(MSException.class, () -> session.build(request));
        Check.contains(wrong.getMessage(), one.part("error").strip());
        continue;
      }
      Built built = session.build(request);
      Check.equal(one.name() + "\n" + one.part("spec"),
          one.name() + "\n" + session.info(built.model(), "spec"));
      session.close(built.model());
    }
  }

  private static BuildRequest request(Case one) throws IOException {
    Path file = Files.createTempFile("mslite", ".ini");
    Files.writeString(file, one.part("ini"));
    BuildRequest request = BuildRequests.ofFile(System.getenv("MSLITE_MODEL"), 0);
    request.isRunner = true;
    RunnerState config = new RunnerState(null, 0, Map.of(), file.toString(), List.of());
    BuildRequests.addRunner(config, request);
    Files.delete(file);
    one.part("settings").lines().forEach(line -> {
      int equals = line.indexOf('=');
      request.settings.add(
          new BuildRequest.Setting(line.substring(0, equals), line.substring(equals + 1)));
    });
    return request;
  }

  private static List<Case> cases() throws IOException {
    String folder = System.getenv("MSLITE_VECTORS");
    if (folder == null) {
      Check.skip("MSLITE_VECTORS is not set");
    }
    List<Case> found = new ArrayList<>();
    String title = "";
    for (String line : Files.readAllLines(Path.of(folder, "../../../settings/vectors.txt"))) {
      if (line.startsWith("== ")) {
        found.add(new Case(line.substring(3), new HashMap<>()));
        title = "";
      } else if (line.startsWith("-- ")) {
        title = line.substring(3);
        found.get(found.size() - 1).parts().put(title, "");
      } else if (!title.isEmpty() && !line.isEmpty()) {
        found.get(found.size() - 1).parts().merge(title, line + "\n", String::concat);
      }
    }
    return found;
  }
}
