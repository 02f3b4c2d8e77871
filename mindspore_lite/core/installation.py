"""Which files a Python process must read to import this package, for the jail.

This file imports nothing of the package: a child loads it by its path, before anything else.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]
# shared libraries and how the loader finds them, facts about the machine, sources of randomness
_SYSTEM = (
    "/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib",
    "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime",
    "/usr/share/zoneinfo", "/usr/share/locale",
    "/proc/self", "/proc/cpuinfo", "/proc/meminfo", "/proc/stat",
    "/proc/sys/vm", "/proc/sys/kernel",
    "/sys/devices/system", "/sys/fs/cgroup", "/sys/kernel/mm", "/sys/bus",
    "/dev/null", "/dev/zero", "/dev/urandom", "/dev/random",
)  # fmt: skip


def readable() -> list[Path]:
    """Files and folders to read: Python, its packages, this package, the system's libraries.

    A folder of sys.path that is no installation, such as the user's project, is not among them.
    """
    found = [Path(folder) for folder in (*_SYSTEM, *_library_folders())]
    found += [Path(sys.prefix), Path(sys.base_prefix), Path(sys.exec_prefix), _PACKAGE]
    found += [Path(sys.executable).resolve().parent]
    found += [folder for folder in path_folders() if _is_installation(folder)]
    return list(dict.fromkeys(found))


def path_folders() -> list[Path]:
    """The folders and archives of sys.path; importing wants to list them, whatever they hold."""
    return [Path(entry).absolute() for entry in sys.path if entry and os.path.exists(entry)]


def _library_folders() -> list[str]:
    return [entry for entry in os.environ.get("LD_LIBRARY_PATH", "").split(":") if entry]


def _is_installation(folder: Path) -> bool:
    """Whether packages were installed there, and not only one of the user's projects."""
    if folder.is_file():  # an archive of packages
        return True
    try:
        return any(name.endswith(".dist-info") for name in os.listdir(folder))
    except OSError:
        return False
