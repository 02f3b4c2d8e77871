"""Sources of a small library in place of the real one, for tests of how a jar is made."""

from __future__ import annotations

from pathlib import Path

from support.cpp_stand_in import write

_MODULE = "/** Told. */\nmodule com.mindspore.lite {\n  exports com.mindspore;\n}\n"
_SOURCE = """\
package com.mindspore;

/** Told. */
public final class Where {
  /** Tells, also of what is beyond ASCII: é. */
  public static String where() {
    return new Throwable().getStackTrace()[0].getFileName() + " \\u00e9".equals(" é");
  }
}
"""
PROGRAM = """\
public class Main {
  public static void main(String[] args) {
    System.out.println(com.mindspore.Where.where());
    System.out.println(com.mindspore.Where.class.getPackage().getImplementationVersion());
  }
}
"""


def stand_in(root: Path) -> Path:
    """A tree such as bindings/java."""
    write(root / "src/module-info.java", _MODULE)
    write(root / "src/com/mindspore/Where.java", _SOURCE)
    write(root / "tests/com/mindspore/WhereTest.java", "is no part of the library\n")
    return root
