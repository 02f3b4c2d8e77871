"""The files that damage begins with: those under tests/data, by rule, and tests/fuzzing/seeds.

Most ONNX models are made of random nodes, for networks hold few operators. Some are made anew for a
case, but that takes longer than the case itself.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from pathlib import Path

from fuzzing.damage import Damage
from support.archives import DATA, cases, content, unpacked
from support.random_models import model_of
from support.wire_vectors import FOLDER as VECTORS
from support.wire_vectors import Vector, read

SEEDS = Path(__file__).parent / "seeds"
_LARGEST = 48 << 10  # a case shall take milliseconds
_FRESH = 1_000_000  # seeds of random models
_BESIDE = {"data": bytes(range(100)), "weights.bin": bytes(100)}  # what external.onnx refers to


@dataclass(frozen=True)
class Seed:
    """A model file, and the files next to it."""

    name: str
    data: bytes
    beside: dict[str, bytes] = field(default_factory=dict)

    def lay(self, folder: Path) -> None:
        """Write the files next to it."""
        for name, data in self.beside.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_bytes(data)


def mindir(damage: Damage) -> Seed:
    """A MindIR file of MindSpore's, or one of ours."""
    found = damage.choice(_mindir_files())
    if isinstance(found, Path):
        return Seed(found.name, found.read_bytes())
    side = DATA / (found.removesuffix("_graph") + "_variables")
    held = sorted(side.iterdir()) if found.endswith("_graph") and side.is_dir() else []
    name = f"{found}.mindir"
    return Seed(
        Path(name).name, content(name), {f"{side.name}/{p.name}": p.read_bytes() for p in held}
    )


def onnx(damage: Damage) -> Seed:
    """A network, a seed of ours, or a random model."""
    if damage.chance(0.02):
        return Seed("fresh", model_of(damage.rng.randrange(_FRESH)).model.SerializeToString())
    if damage.chance(0.5):
        return Seed("random", damage.choice(_random_models()))
    if damage.chance(0.3):
        path = damage.choice(_files(DATA / "onnx_nets", "*.onnx"))
    else:
        path = damage.choice(_files(SEEDS, "*.onnx"))
    return Seed(path.name, path.read_bytes(), _BESIDE)


@functools.cache
def _mindir_files() -> tuple[Path | str, ...]:
    """Paths of seeds, and names of cases."""
    small = (case for case in cases() if len(content(f"{case}.mindir")) <= _LARGEST)
    return (*_files(SEEDS, "*.mindir"), *small)


@functools.cache
def _random_models() -> tuple[bytes, ...]:
    return tuple(unpacked((SEEDS / "random.zip").read_bytes()).values())


@functools.cache
def _files(folder: Path, pattern: str) -> tuple[Path, ...]:
    return tuple(p for p in sorted(folder.glob(pattern)) if p.stat().st_size <= _LARGEST)


@functools.cache
def vectors() -> tuple[Vector, ...]:
    """What the two sides of the wire say, good and bad."""
    return tuple(read(path) for path in sorted(VECTORS.glob("*.txt")))
