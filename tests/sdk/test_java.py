from __future__ import annotations

import os
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from support.cpp_stand_in import write
from support.java import JAVA, JAVAC, needs_jdk
from support.java_stand_in import PROGRAM, stand_in
from support.shared import as_in_wheel, files

from mindspore_lite.errors import LiteError
from mindspore_lite.sdk.install import install
from mindspore_lite.sdk.java import JAR, POM, find_sources, make_sdk, write_jar
from mindspore_lite.version import __version__

LAYOUT = {JAR, POM, "runtime/mslite-java.files"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return stand_in(tmp_path / "root")


@needs_jdk
def test_a_program_runs_with_the_jar_on_the_class_path_and_on_the_module_path(
    tmp_path: Path, root: Path
) -> None:
    cpp = {"runtime/include/api/model.h": "", "runtime/lib/libmindspore-lite.so": ""}
    install(tmp_path / "sdk", "cpp", cpp)
    make_sdk(tmp_path / "sdk", JAVAC, root)
    install(tmp_path / "sdk", "cpp", cpp)  # neither language disturbs the other
    assert files(tmp_path / "sdk").keys() == LAYOUT | cpp.keys() | {"runtime/mslite-cpp.files"}
    for content in files(tmp_path / "sdk").values():
        assert os.fsencode(tmp_path) not in content
    jar = str((tmp_path / "sdk").rename(tmp_path / "moved") / JAR)
    write(tmp_path / "Main.java", PROGRAM)
    command = [JAVA, "-cp", jar, str(tmp_path / "Main.java")]
    said = subprocess.check_output(command, text=True)
    assert said == f"Where.javatrue\n{__version__}\n"
    described = [JAVA, "-p", jar, "--describe-module", "com.mindspore.lite"]
    assert f"com.mindspore.lite@{__version__} " in subprocess.check_output(described, text=True)


@needs_jdk
def test_making_it_again_gives_the_same_bytes_and_a_failure_leaves_them(
    tmp_path: Path, root: Path
) -> None:
    sdk = tmp_path / "sdk"
    make_sdk(sdk, JAVAC, root)
    before = files(sdk)
    for source in (root / "src").rglob("*.java"):
        os.utime(source, (0, 0))
    make_sdk(sdk, JAVAC, root)
    assert files(sdk) == before
    write(root / "src/com/mindspore/Bad.java", "package com.mindspore;\nclass Worse {\n")
    told = r"could not compile the library \(exit code 1\); it said:\ncom/mindspore/Bad\.java:2: "
    with pytest.raises(LiteError, match=told):
        make_sdk(sdk, JAVAC, root)
    assert files(sdk) == before


def test_a_jar_depends_on_names_and_bytes_alone(tmp_path: Path) -> None:
    names = ["b/C.class", "a/B.class", "module-info.class"]
    jars = []
    for order in (names, names[::-1]):
        classes = tmp_path / str(len(jars))
        for number, name in enumerate(order):
            write(classes / name, f"the bytes of {name}" * 10)
            os.utime(classes / name, (number, number))
            (classes / name).chmod(0o600 + number)
        jars.append(tmp_path / f"{len(jars)}.jar")
        write_jar(jars[-1], classes)
    assert jars[0].read_bytes() == jars[1].read_bytes()


def test_a_directory_of_someone_else_is_refused_before_anything_is_compiled(
    tmp_path: Path, root: Path
) -> None:
    write(tmp_path / "sdk" / JAR, "the original's")
    with pytest.raises(LiteError, match="is there already, and not by `mslite sdk java`"):
        make_sdk(tmp_path / "sdk", "/no/javac", root)


def test_the_pom_has_the_names_that_programs_for_the_original_have(java_sdk: Path) -> None:
    space = "{http://maven.apache.org/POM/4.0.0}"
    pom = ET.fromstring((java_sdk / POM).read_text())
    names = {field: pom.findtext(space + field) for field in ("groupId", "artifactId", "version")}
    assert names == {
        "groupId": "com.mindspore.lite",
        "artifactId": "mindspore-lite-java",
        "version": "1.0",
    }


def test_the_wheel_has_the_sources_where_they_are_looked_for(tmp_path: Path) -> None:
    found = find_sources(as_in_wheel(tmp_path))
    assert found.is_relative_to(tmp_path)
    assert files(found / "src") == files(find_sources() / "src")
    assert [path.name for path in found.iterdir()] == ["src"]  # no tests


def test_a_package_without_sources_says_so(tmp_path: Path) -> None:
    with pytest.raises(LiteError, match="sources of the Java library are not in"):
        find_sources(tmp_path / "mindspore_lite")
