"""Writes the test vectors of the wire protocol anew, from tests/support/wire_cases.py.

Run: python scripts/wire_vectors.py

A vector that changes is a protocol that changes: see "Versions" in docs/wire.md first.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]


def main() -> None:
    """Write all files; those that are not vectors any more go."""
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    from support import wire_bad_cases, wire_cases
    from support.wire_vectors import FOLDER, Vector

    modules = (wire_cases.VECTORS, wire_bad_cases.VECTORS)
    vectors: list[Vector] = [vector for found in modules for vector in found]
    for old in FOLDER.glob("*.txt"):
        old.unlink()
    for vector in vectors:
        text = "".join(f"{line}\n" for line in vector.lines())
        (FOLDER / f"{vector.name}.txt").write_text(text, encoding="ascii")
    print(f"{len(vectors)} vectors in {FOLDER.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
