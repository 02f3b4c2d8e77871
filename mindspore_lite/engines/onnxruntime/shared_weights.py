"""Lets models of a group hold equal weights once, by mapping them from each other's data files.

ONNX Runtime maps the weights of a compiled model, raw and packed, from its data file. Two models
that map the same pages of the same file hold them once, so the second needs only other places in
its graph. Two weights are equal when their raw bytes are, read and compared here, and when their
packed forms have the same names; ONNX Runtime puts a hash of the packed bytes into the name.

Who owns what: a group remembers where weights lie, and holds nothing open; a model keeps alive what
it has mapped, whatever is closed or removed from the cache. Removing an artefact takes no notice of
groups. So it is looked at after a model was opened whether the files that it was sent to are still
those that were compared: a removed file never comes back, so one that is there was there all the
time. Else the model is opened again, from its own file. Models of one group are opened one at a
time, and no lock of the cache is taken meanwhile.
"""

from __future__ import annotations

import mmap
import os
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from mindspore_lite.core.files import Stamp
from mindspore_lite.core.fork import ForkLock
from mindspore_lite.engines.cache import artefact
from mindspore_lite.engines.cache.digest import stamp
from mindspore_lite.engines.prepare.alignment import stored_outside
from mindspore_lite.errors import EngineError

if TYPE_CHECKING:
    import onnx

T = TypeVar("T")
Load = Callable[[str | bytes, dict[str, str]], T]  # a compiled model, session settings -> a session
Likeness = tuple[tuple[str, str], ...]  # what two weights have in common if they may be equal

_FROM_ROOT = {"session.model_external_initializers_file_folder_path": "/"}
_PIECE_BYTES = 1 << 20  # compared at once
_PACKED_PLACE = re.compile(r"\|\d+;")


@dataclass(frozen=True)
class WeightPlace:
    """Where a weight lies: its data file as it was then, and what the graph says of it."""

    file: Path
    stamp: Stamp
    entries: Mapping[str, str]  # offset, length, and one per packed form

    def likeness(self) -> Likeness:
        """The entries without positions."""
        found = {key: _PACKED_PLACE.sub("|", text) for key, text in self.entries.items()}
        del found["offset"]
        return tuple(sorted(found.items()))

    def size_bytes(self) -> int:
        """Of the raw weight."""
        return int(self.entries["length"])

    def there(self) -> bool:
        """Whether the file is still that very file, untouched."""
        try:
            return stamp(self.file) == self.stamp
        except OSError:
            return False


class SharedWeights:
    """The weights that the models of a group hold, and where they lie."""

    def __init__(self) -> None:
        self._lock = ForkLock()
        self._known: dict[Likeness, tuple[WeightPlace, ...]] = {}

    def opened(self, folder: Path, load: Load[T]) -> T:
        """Load the model of an artefact, reading from elsewhere what the group holds already."""
        with self._lock:
            model = _read(folder / artefact.MODEL)
            own = _places(model, folder / artefact.WEIGHTS)
            shared = self._equal(own)
            if shared:
                with suppress(EngineError, UnicodeError):  # a path that is not UTF-8
                    _move(model, own, shared)
                    session = load(model.SerializeToString(), _FROM_ROOT)
                    if all(place.there() for place in shared.values()):
                        self._learn(place for at, place in enumerate(own) if at not in shared)
                        return session
            session = load(str(folder / artefact.MODEL), {})
            self._learn(own)
            return session

    def _equal(self, own: list[WeightPlace]) -> dict[int, WeightPlace]:
        """The known places of equal weights, by the number of ours."""
        found = {}
        with ExitStack() as files:
            read = _Reader(files)
            for at, place in enumerate(own):
                for other in self._known.get(place.likeness(), ()):
                    if other.file != place.file and read.equal(place, other):
                        found[at] = other
                        break
        return found

    def _learn(self, places: Iterable[WeightPlace]) -> None:
        """Remember where these lie, and forget places that are no more."""
        self._known = {
            likeness: there
            for likeness, known in self._known.items()
            if (there := tuple(place for place in known if place.there()))
        }
        for place in places:
            known = self._known.get(place.likeness(), ())
            # weights below a page have none of their own
            if place.size_bytes() >= mmap.PAGESIZE and place not in known:
                self._known[place.likeness()] = (*known, place)


class _Reader:
    """Data files, opened when first needed."""

    def __init__(self, files: ExitStack) -> None:
        self._files = files
        self._opened: dict[Path, int | None] = {}

    def equal(self, one: WeightPlace, other: WeightPlace) -> bool:
        """Whether two weights of the same length are; a file that is not there equals nothing."""
        first, second = self._file(one.file), self._file(other.file)
        if first is None or second is None:
            return False
        start, there = int(one.entries["offset"]), int(other.entries["offset"])
        for done in range(0, one.size_bytes(), _PIECE_BYTES):
            count = min(_PIECE_BYTES, one.size_bytes() - done)
            data = os.pread(first, count, start + done)
            if len(data) != count or data != os.pread(second, count, there + done):
                return False
        return True

    def _file(self, path: Path) -> int | None:
        if path not in self._opened:
            self._opened[path] = None
            with suppress(OSError):
                self._opened[path] = file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
                self._files.callback(os.close, file)
        return self._opened[path]


def _read(file: Path) -> onnx.ModelProto:
    import onnx
    from google.protobuf.message import DecodeError

    try:
        return onnx.load(file, load_external_data=False)
    except DecodeError as exc:
        raise EngineError(f"the compiled model {str(file)!r} is damaged: {exc}") from exc


def _places(model: onnx.ModelProto, file: Path) -> list[WeightPlace]:
    """Where the weights of a compiled model lie."""
    entries = [
        {entry.key: entry.value for entry in tensor.external_data if entry.key != "location"}
        for tensor in stored_outside(model.graph)
    ]
    now = stamp(file) if entries else ()
    return [WeightPlace(file, now, each) for each in entries]


def _move(
    model: onnx.ModelProto, own: list[WeightPlace], shared: Mapping[int, WeightPlace]
) -> None:
    """Let every weight of a model name its file by the way from the root, be it its own or not."""
    for at, tensor in enumerate(stored_outside(model.graph)):
        place = shared.get(at, own[at])
        for entry in tensor.external_data:
            if entry.key == "location":
                entry.value = str(place.file).removeprefix("/")
            else:
                entry.value = place.entries[entry.key]
