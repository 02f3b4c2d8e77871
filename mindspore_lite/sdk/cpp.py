"""Builds the C++ library into a user's directory: headers, library and package files.

The layout is the original's: a program's build has LITE_HOME at the directory, finds
`include/api/*.h` under `runtime` and `libmindspore-lite.so` in `runtime/lib`. No file has an
absolute path in it, so the directory can be moved. bindings/cpp/CMakeLists.txt installs the same.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from mindspore_lite.sdk import sources
from mindspore_lite.sdk.compiler import Compiler, build_library
from mindspore_lite.sdk.install import check_target, install
from mindspore_lite.version import __version__

LIBRARY = "libmindspore-lite.so"
PACKAGE_FILES = {  # template: where it goes
    "cmake/mindspore-lite-config.cmake.in": "share/cmake/mindspore-lite",
    "cmake/mindspore-lite-config-version.cmake.in": "share/cmake/mindspore-lite",
    "cmake/mindspore-lite.pc.in": "runtime/lib/pkgconfig",
}
EMPTY = "tools/converter/lib"  # programs written for the original link with -L of it


def find_sources(package: Path = sources.PACKAGE) -> Path:
    """The directory with `include`, `src` and `cmake`.

    Raises:
        LiteError: It is not there.
    """
    return sources.find("cpp", "C++", package)


def make_sdk(
    folder: Path, compiler: Compiler, jobs: int, step: Callable[[str], None], root: Path
) -> None:
    """Compile the library of the sources in `root`, and lay everything out in `folder`.

    A failure leaves the directory as it was.

    Raises:
        LiteError: The compiler failed, or the directory cannot be used.
    """
    files: dict[str, Path | str] = {
        f"runtime/include/{header.relative_to(root / 'include').as_posix()}": header
        for header in sorted((root / "include").rglob("*.h"))
    }
    for template, place in PACKAGE_FILES.items():
        text = (root / template).read_text(encoding="utf-8")
        name = Path(template).name.removesuffix(".in")
        files[f"{place}/{name}"] = text.replace("@PROJECT_VERSION@", __version__)
    with tempfile.TemporaryDirectory(prefix="mslite-sdk-") as temporary:
        library = Path(temporary) / LIBRARY
        files[f"runtime/lib/{LIBRARY}"] = library
        check_target(folder, "cpp", files)
        build_library(compiler, root, library, jobs, step)
        install(folder, "cpp", files)
    (folder / EMPTY).mkdir(parents=True, exist_ok=True)
