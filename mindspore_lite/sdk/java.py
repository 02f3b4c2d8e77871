"""Builds the Java library into a user's directory: a jar and its Maven description.

The layout is the original's: programs for it expect `runtime/lib/mindspore-lite-java.jar`, and
their poms name it by GROUP, ARTIFACT and POM_VERSION.
"""

from __future__ import annotations

import tempfile
import zipfile
from pathlib import Path

from mindspore_lite.sdk import sources
from mindspore_lite.sdk.install import check_target, install
from mindspore_lite.sdk.javac import compile_classes
from mindspore_lite.version import __version__

GROUP, ARTIFACT, POM_VERSION = "com.mindspore.lite", "mindspore-lite-java", "1.0"
JAR = f"runtime/lib/{ARTIFACT}.jar"
POM = f"runtime/lib/{ARTIFACT}.pom"
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the first moment that a zip file can express
_MANIFEST = f"""\
Manifest-Version: 1.0
Implementation-Title: {ARTIFACT}
Implementation-Version: {__version__}
"""
_POM_TEXT = f"""\
<?xml version="1.0" encoding="UTF-8"?>
<project xmlns="http://maven.apache.org/POM/4.0.0"
         xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
         xsi:schemaLocation="http://maven.apache.org/POM/4.0.0 \
https://maven.apache.org/xsd/maven-4.0.0.xsd">
  <modelVersion>4.0.0</modelVersion>
  <groupId>{GROUP}</groupId>
  <artifactId>{ARTIFACT}</artifactId>
  <version>{POM_VERSION}</version>
  <packaging>jar</packaging>
  <name>mslite {__version__}</name>
  <description>The Java interface of mslite, which has to be installed as well.</description>
</project>
"""


def find_sources(package: Path = sources.PACKAGE) -> Path:
    """The directory with `src`.

    Raises:
        LiteError: It is not there.
    """
    return sources.find("java", "Java", package)


def make_sdk(folder: Path, javac: str, root: Path) -> None:
    """Compile the library of the sources in `root`, and lay everything out in `folder`.

    A failure leaves the directory as it was.

    Raises:
        LiteError: The compiler failed, or the directory cannot be used.
    """
    with tempfile.TemporaryDirectory(prefix="mslite-sdk-") as temporary:
        jar, classes = Path(temporary) / "made.jar", Path(temporary) / "classes"
        files: dict[str, Path | str] = {JAR: jar, POM: _POM_TEXT}
        check_target(folder, "java", files)
        compile_classes(javac, root / "src", classes, __version__)
        write_jar(jar, classes)
        install(folder, "java", files)


def write_jar(jar: Path, classes: Path) -> None:
    """Pack all files below `classes`: equal classes make equal bytes, whenever and wherever."""
    with zipfile.ZipFile(jar, "w") as archive:
        manifest = _MANIFEST.replace("\n", "\r\n").encode()
        archive.writestr(_entry("META-INF/MANIFEST.MF"), manifest)  # readers want it first
        for path in sorted(path for path in classes.rglob("*") if path.is_file()):
            archive.writestr(_entry(path.relative_to(classes).as_posix()), path.read_bytes())


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, _EPOCH)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    return entry
