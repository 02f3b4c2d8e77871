"""The real jar as a module, in a program that is one, too."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from support.java import JAVA, built_sdk, compiled, needs_jdk
from support.shared import DIGITS, run

from mindspore_lite.sdk.java import JAR
from mindspore_lite.version import __version__

MODULE = "module user.program {\n  requires com.mindspore.lite;\n}\n"
PROGRAM = """\
package user;

import com.mindspore.MSTensor;
import com.mindspore.ModelParallelRunner;
import com.mindspore.config.Version;
import java.util.ArrayList;
import java.util.List;

public class Main {
  public static void main(String[] arguments) {
    System.out.println(Version.version());
    try (ModelParallelRunner runner = new ModelParallelRunner().throwing()) {
      runner.init(arguments[0]);
      List<MSTensor> outputs = new ArrayList<>();
      runner.predict(List.of(MSTensor.of("x", new float[600][1][8][8])), outputs);
      System.out.println(outputs.get(0).elementsNum());
    }
  }
}
"""


@needs_jdk
def test_the_jar_serves_a_program_on_the_module_path(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    jar = built_sdk(tmp_path_factory) / JAR
    described = subprocess.check_output(
        [JAVA, "-p", jar, "--describe-module", "com.mindspore.lite"], text=True
    )
    assert set(described.splitlines()[1:]) == {
        "exports com.mindspore",
        "exports com.mindspore.config",
        "requires java.base mandated",
        "requires java.logging",
        "contains com.mindspore.internal",
        "contains com.mindspore.internal.wire",
    }
    (tmp_path / "module-info.java").write_text(MODULE)
    (tmp_path / "Main.java").write_text(PROGRAM)
    sources = [tmp_path / "module-info.java", tmp_path / "Main.java"]
    classes = compiled(sources, tmp_path / "classes", flags=("-p", str(jar)))
    done = run([JAVA, "-p", f"{jar}:{classes}", "-m", "user.program/user.Main", DIGITS])
    assert done.stdout == f"MindSpore Lite {__version__}\n6000\n", done.stderr
