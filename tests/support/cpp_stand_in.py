"""Sources of a small library in place of the real one, for tests of how one is built."""

from __future__ import annotations

import shutil
from pathlib import Path

from support.cpp import BINDINGS

_HEADER = """\
#ifndef STAND_IN_H_
#define STAND_IN_H_
namespace mindspore {
class __attribute__((visibility("default"))) Place {
 public:
  virtual ~Place();
  virtual const char *Where() const;
};
}
#endif
"""
_SOURCE = """\
#include "include/api/where.h"
int Hidden() { return 3; }
mindspore::Place::~Place() {}
const char *mindspore::Place::Where() const { return __FILE__; }
"""
PROGRAM = """\
#include <cstdio>
#include "include/api/where.h"
class Here : public mindspore::Place {};  // needs what describes its base at run time
int main() { std::puts(Here().Where()); }
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
