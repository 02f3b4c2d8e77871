"""Sources of a small library in place of the real one, for tests of how one is built."""

from __future__ import annotations

import shutil
from pathlib import Path

from support.cpp import BINDINGS

_HEADER = """\
#ifndef STAND_IN_H_
#define STAND_IN_H_
namespace mindspore {
__attribute__((visibility("default"))) const char *Where();
}
#endif
"""
_SOURCE = """\
#include "include/api/where.h"
int Hidden() { return 3; }
const char *mindspore::Where() { return __FILE__; }
"""
PROGRAM = """\
#include <cstdio>
#include "include/api/where.h"
int main() { std::puts(mindspore::Where()); }
"""


def stand_in(root: Path) -> Path:
    """A tree such as bindings/cpp, with the true package files."""
    write(root / "include/api/where.h", _HEADER)
    write(root / "src/deep/where.cc", _SOURCE)
    write(root / "src/other.cc", "int Other() { return 1; }\n")
    write(root / "tests/where_test.cc", "#error is no part of the library\n")
    shutil.copytree(BINDINGS / "cmake", root / "cmake")
    return root


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
