"""Fails when a file has more than 600 lines or a function more than 60. Run: python scripts/size.py

Reads the tracked and new Python, C++ and Java files of the repository; of functions only those of
the Python ones. Exceptions are listed below with a reason.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

MAX_FILE_LINES = 600
MAX_FUNCTION_LINES = 60
EXCEPTIONS: dict[str, str] = {
    "mindspore_lite/mindir/mindir_pb2.pyi": "generated",
    "mindspore_lite/mindir/mindir_pb2.py": "generated",
    "mindspore_lite/server/grpc/inference_pb2.pyi": "generated",
    "mindspore_lite/server/grpc/model_config_pb2.pyi": "generated",
    "mindspore_lite/server/grpc/inference_pb2.py": "generated",
}


def code_files(root: Path) -> Iterator[Path]:
    """The repository's own files of code, as git sees them."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    kinds = ["*.py", "*.pyi", "*.c", "*.cc", "*.h", "*.java"]
    listed = subprocess.run(
        [*command, *kinds], cwd=root, capture_output=True, text=True, check=True
    ).stdout
    for name in sorted(set(listed.splitlines())):
        if (root / name).is_file():
            yield Path(name)


def too_long(name: Path, text: str) -> Iterator[str]:
    """One line per thing in a file that is too long."""
    count = text.count("\n")
    if count > MAX_FILE_LINES:
        yield f"{name}: {count} lines, at most {MAX_FILE_LINES}; split it"
    if name.suffix not in (".py", ".pyi"):
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > MAX_FUNCTION_LINES:
                place = f"{name}:{node.lineno}: {node.name}"
                yield f"{place} has {length} lines, at most {MAX_FUNCTION_LINES}"


def main() -> int:
    """Print what is too long; the exit code says whether anything was."""
    root = Path(__file__).parent.parent
    found = [
        line
        for name in code_files(root)
        if str(name) not in EXCEPTIONS
        for line in too_long(name, (root / name).read_text(encoding="utf-8"))
    ]
    print("\n".join(found) or "sizes are fine")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
