"""What the ONNX operators over image axes share: windows, pads, and added axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mindspore_lite.ops.to_mindir.table import NoEquivalentError
from mindspore_lite.ops.to_mindir.writer import Made, MindirWriter, Operand

Ints = Sequence[int] | None


@dataclass(frozen=True)
class Window:
    """A window that moves over image axes, one number per axis."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    begins: tuple[int, ...]
    ends: tuple[int, ...]
    same: bool = False  # pads as MindSpore's 'same' has them, whatever the size of the image

    @property
    def dims(self) -> int:
        """How many axes it moves over."""
        return len(self.kernel)

    @property
    def is_padded(self) -> bool:
        """Whether it may reach over an edge."""
        return self.same or any(self.begins) or any(self.ends)

    @property
    def is_even(self) -> bool:
        """Whether both edges of each axis have as many pads."""
        return not self.same and self.begins == self.ends

    @property
    def is_dilated(self) -> bool:
        """Whether it leaves pixels out."""
        return max(self.dilations) > 1

    @property
    def pad_list(self) -> tuple[int, ...]:
        """(begin, end) of each axis in turn; -1 where they depend on the size of the image."""
        if self.same:
            return (-1,) * 2 * self.dims
        pairs = zip(self.begins, self.ends, strict=True)
        return tuple(n for pair in pairs for n in pair)

    def at_front(self) -> Window:
        """The same with one more axis before, on which it does not move."""
        one, none = (1,), (0,)
        return Window(
            one + self.kernel,
            one + self.strides,
            one + self.dilations,
            none + self.begins,
            none + self.ends,
            self.same,
        )


def window(
    kernel: Sequence[int | None],
    strides: Ints,
    dilations: Ints,
    pads: Ints,
    auto_pad: str = "NOTSET",
) -> Window:
    """The window that ONNX attributes describe."""
    if any(n is None for n in kernel):
        raise NoEquivalentError("a window whose size is known only at run time")
    sizes = tuple(int(n) for n in kernel if n is not None)
    dims = len(sizes)
    steps = tuple(strides or (1,) * dims)
    apart = tuple(dilations or (1,) * dims)
    edges = tuple(pads or (0,) * 2 * dims)
    if auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        return _same(sizes, steps, apart, auto_pad)
    if auto_pad == "VALID":
        edges = (0,) * 2 * dims
    if min(edges) < 0:
        raise NoEquivalentError("negative pads")
    return Window(sizes, steps, apart, edges[:dims], edges[dims:])


def _same(sizes: tuple[int, ...], steps: tuple[int, ...], apart: tuple[int, ...],
          mode: str) -> Window:  # fmt: skip
    """ONNX Runtime's rule is MindSpore's only where windows touch and are not dilated."""
    if max(apart) > 1 or any(s > k for s, k in zip(steps, sizes, strict=True)):
        raise NoEquivalentError(f"{mode} with dilations, or strides beyond the window")
    none = (0,) * len(sizes)
    if mode == "SAME_UPPER":
        return Window(sizes, steps, apart, none, none, same=True)
    if max(steps) > 1:
        raise NoEquivalentError("SAME_LOWER with strides")
    ends = tuple((k - 1) // 2 for k in sizes)
    begins = tuple(k - 1 - e for k, e in zip(sizes, ends, strict=True))
    return Window(sizes, steps, apart, begins, ends)


def with_axis(p: MindirWriter, run: Callable[..., Made | tuple[Made, ...]], *values: Any) -> Any:
    """Run with an axis of one element at place 2 of the values, and take it from the results."""
    made = run(*(p.call("ExpandDims", value, 2) for value in values))
    if isinstance(made, tuple):
        return tuple(p.call("Squeeze", value, (2,)) for value in made)
    return p.call("Squeeze", made, (2,))


def sizes(p: MindirWriter, x: Operand) -> list[Any]:
    """The dims of a value: numbers, or scalars of the run time where they are open."""
    known = x.shape
    if None not in known:
        return list(known)
    shape = p.call("Shape", x)
    return [p.item(shape, i) if n is None else n for i, n in enumerate(known)]


def joined(p: MindirWriter, numbers: Sequence[Any]) -> Any:
    """Numbers and scalars of the run time as one tuple."""
    if all(isinstance(n, int) for n in numbers):
        return tuple(numbers)
    return p.tuple(numbers)
