"""Ends with a sentence where this Python is too old. Run by the Makefile and by a build.

It runs on any Python, so that no other message comes first: those of pip's resolver name a package
that has nothing to do with it.
"""

import sys

WANTED = (3, 11)


def check():
    """End the program, unless this Python is new enough."""
    if sys.version_info[:2] < WANTED:
        versions = WANTED + tuple(sys.version_info[:2]) + (sys.executable,)
        sys.exit(
            "mslite needs Python {}.{} or newer, this is {}.{} ({}); name another one, such as: "
            "make PYTHON=python3.12 demo, or make an environment with it: "
            "python3.12 -m venv .venv".format(*versions)
        )


if __name__ == "__main__":
    check()
