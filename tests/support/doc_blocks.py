"""The code blocks of the README and the docs, and what they are said to print."""

from __future__ import annotations

import functools
import re
import shlex
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("benchmarks/*.md")])
# the word after the language: gpu, for what needs an NVIDIA card
_BLOCK = re.compile(r"^```(\w*)(?: (\w+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_TIME = re.compile(r"\d+\.\d+ ms")
_APART = re.compile(r"(difference|cosine)([^\d\n]*)\d[\d.e-]*")  # of the order of rounding errors
_LONG_NUMBER = re.compile(r"\d+\.\d{4,}")
_OTHERS = {  # languages with tests of their own: their blocks, and commands about them
    "cpp": ({"cpp", "cmake"}, {"g++", "cmake", "./main", "build/main"}),
    "java": ({"java", "xml"}, {"javac", "java", "mvn"}),
}


def blocks(page: Path) -> list[tuple[str, str, str | None]]:
    """(language, code, text block right after it or None) of each code block to run here."""
    found = all_blocks(page)
    needs = {need for _, need, _, _ in found if need}
    assert needs <= {"gpu"}, f"{page.name}: blocks that need {needs}"
    return [
        (language, code, wanted) for language, need, code, wanted in found if not need or has_card()
    ]


def all_blocks(page: Path) -> list[tuple[str, str, str, str | None]]:
    """(language, what it needs, code, text block right after it or None) of each code block."""
    found = _BLOCK.findall(page.read_text(encoding="utf-8"))
    following = [*found[1:], ("", "", "")]
    return [
        (language, need, code, after if kind == "text" else None)
        for (language, need, code), (kind, _, after) in zip(found, following, strict=False)
        if language != "text"
    ]


@functools.cache
def has_card() -> bool:
    """Whether PyTorch sees an NVIDIA card; asked only by pages that need one."""
    try:
        import torch
    except ImportError:
        return False
    return bool(torch.cuda.is_available())


def shell_lines(code: str) -> list[str]:
    """The commands of a block, one a line."""
    return code.replace("\\\n", " ").splitlines()


def is_about_cpp(language: str, code: str) -> bool:
    """Whether a block needs a C++ compiler: test_docs_cpp.py runs it, test_docs.py does not."""
    return _is_about("cpp", language, code)


def is_about_java(language: str, code: str) -> bool:
    """Whether a block needs a JDK: test_docs_java.py runs it, test_docs.py does not."""
    return _is_about("java", language, code)


def _is_about(other: str, language: str, code: str) -> bool:
    languages, commands = _OTHERS[other]
    if language != "bash":
        return language in languages
    words = [shlex.split(line, comments=True) for line in shell_lines(code)]
    return any(line[0] in commands or line[:3] == ["mslite", "sdk", other] for line in words)


def assert_same_output(printed: str, wanted: str) -> None:
    """Equal but for times, and for the last digits of results, which depend on the CPU."""
    texts = (_APART.sub(r"\1\2D", _TIME.sub("T ms", text)) for text in (printed, wanted))
    got, want = (text.split("\n") for text in texts)
    assert len(got) == len(want), printed
    for got_line, want_line in zip(got, want, strict=True):
        rounded = [
            _LONG_NUMBER.sub(lambda m: f"{float(m[0]):.3g}", line) for line in (got_line, want_line)
        ]
        assert rounded[0] == rounded[1]
