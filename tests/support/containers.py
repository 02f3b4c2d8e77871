"""deploy/Dockerfile as data, images in a plain store, and one that runs without an engine."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent
DOCKERFILE = ROOT / "deploy/Dockerfile"
BUILDAH = ("buildah", "--storage-driver", "vfs")
LIMIT_S = 120.0
# the root is read-only but for the two folders that docs/scaling.md names, and there are no rights
# (--cap-drop ALL, no-new-privileges); processes, network and mounts are its own, as an engine does
_RUN = """
ip link set lo up
mount --bind "$1" "$1" && mount -o remount,ro,bind "$1"
mount -t proc proc "$1/proc" && mount --bind /dev "$1/dev"
mount -t tmpfs tmpfs "$1/tmp" && mount -t tmpfs -o mode=0777 tmpfs "$1/cache"
mount --bind "$2" "$1/mnt/models" && mount -o remount,ro,bind "$1/mnt/models"
root="$1" user="$3"; shift 3
exec chroot "$root" setpriv --reuid "${user%:*}" --regid "${user#*:}" --clear-groups \\
  --no-new-privs --bounding-set=-all --inh-caps=-all "$@"
"""


def instructions() -> list[tuple[str, str]]:
    """(instruction, rest) of each, with continued lines joined."""
    lines = DOCKERFILE.read_text(encoding="utf-8").splitlines()
    text = "\n".join(line for line in lines if not line.lstrip().startswith("#"))
    joined = re.sub(r"\\\n\s*", " ", text).splitlines()
    pairs = (line.split(maxsplit=1) for line in joined if line.strip())
    return [(name, rest) for name, rest in pairs]


def only(name: str) -> str:
    """The rest of the one instruction of that name."""
    (rest,) = (rest for found, rest in instructions() if found == name)
    return rest


def missing_tools() -> str:
    """Why an image can be neither built nor run here; "" if it can."""
    if os.geteuid() != 0:
        return "wants to be run as root"
    for tool in ("buildah", "debootstrap", "unshare", "nsenter", "ip", "chroot"):
        if shutil.which(tool) is None:
            return f"no {tool}; apt install buildah debootstrap util-linux iproute2"
    tried = ["unshare", "--mount", "--net", "--pid", "--fork", "true"]
    if subprocess.run(tried, capture_output=True, check=False).returncode:
        return "no namespaces can be made here"
    return ""


def buildah(*arguments: str) -> str:
    done = subprocess.run([*BUILDAH, *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@dataclass
class Image:
    """An image in the store, its files mounted."""

    root: Path
    config: dict[str, Any]

    def environment(self) -> list[str]:
        return ["env", "-i", *self.config["Env"]]


@contextmanager
def mounted(tag: str) -> Iterator[Image]:
    """The files and the configuration of an image."""
    made = buildah("from", tag)
    try:
        config = json.loads(buildah("inspect", "--type", "image", tag))["Docker"]["config"]
        yield Image(Path(buildah("mount", made)), config)
    finally:
        buildah("rm", made)


@dataclass
class Container:
    """A process that runs an image's command."""

    image: Image
    engine: subprocess.Popen[str]
    pid: int

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a command of the image next to it, as `docker exec` does."""
        user = self.image.config["User"]
        inner = ["chroot", f"--userspec={user}", str(self.image.root), *self.image.environment()]
        return self._next_to("--mount", "--net", "--pid", "--", *inner, *command)

    def ask(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a command of this machine in its network."""
        return self._next_to("--net", "--", *command)

    def _next_to(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = ["nsenter", "--target", str(self.pid), *arguments]
        return subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=LIMIT_S
        )  # fmt: skip


@contextmanager
def running(image: Image, models: Path, *arguments: str) -> Iterator[Container]:
    """Run its command, or another, with a read-only root; it is ended at the end."""
    config = image.config
    command = [*image.environment(), *config["Entrypoint"], *(arguments or config["Cmd"])]
    spaces = ["unshare", "--mount", "--net", "--pid", "--fork"]
    given = ["sh", "-euc", _RUN, "sh", str(image.root), str(models), config["User"]]
    engine = subprocess.Popen(
        [*spaces, *given, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    children = Path(f"/proc/{engine.pid}/task/{engine.pid}/children")
    try:
        assert engine.stdout is not None
        line = engine.stdout.readline()
        assert line.startswith("ready: "), (line, engine.communicate(timeout=LIMIT_S))
        yield Container(image, engine, int(children.read_text()))
    finally:
        if engine.poll() is None:  # the first process of a namespace takes all others with it
            for pid in children.read_text().split():
                os.kill(int(pid), signal.SIGKILL)
        engine.communicate(timeout=LIMIT_S)


def exec_form(rest: str) -> list[str]:
    """The list of an instruction that needs no shell; ValueError if it does."""
    found = json.loads(rest)
    if not isinstance(found, list):
        raise ValueError(f"{rest!r} is no list")
    return [str(one) for one in found]


def copied() -> list[str]:
    """What the Dockerfile copies from the repository."""
    rows = [shlex.split(rest) for name, rest in instructions() if name == "COPY"]
    return [one for row in rows if not row[0].startswith("--from") for one in row[:-1]]
