"""Tensors: typed data in and out of a model, a thin layer over NumPy arrays.

The data of a tensor on a card is a tensor of PyTorch; what is done with it is in
engines/torch/memory.py, which is imported when there is one.
"""

from __future__ import annotations

import importlib.util
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import numpy as np

from mindspore_lite.core import checks, dtypes, foreign_arrays, layouts
from mindspore_lite.core.extras import pip_install
from mindspore_lite.core.tensor_types import DataType as DataType
from mindspore_lite.core.tensor_types import Format as Format
from mindspore_lite.engines import ascend
from mindspore_lite.errors import EngineUnavailableError, InputError, LiteError, ShapeError

Array = np.ndarray[Any, np.dtype[Any]]


_MEMBERS = {
    row.numpy: DataType[row.name.upper()]
    for row in dtypes.TABLE
    if row.name.upper() in DataType.__members__
}
# UNKNOWN and INVALID can be set and read back too: two distinct types whose elements have no bytes
_MEMBERS |= {np.dtype("V0"): DataType.UNKNOWN, np.dtype([]): DataType.INVALID}
_NUMPY = {member: dtype for dtype, member in _MEMBERS.items()}

numpy_data_type_map = {dtype.type: m for dtype, m in _MEMBERS.items() if dtype.itemsize}
ms_to_numpy_data_type_map = {member: scalar for scalar, member in numpy_data_type_map.items()}

_MAX_ELEMENTS = sys.maxsize // 16  # so that no change of the dtype can make it too large
_MAX_DEVICE_INDEX = 2**31 - 1


@dataclass
class TensorMeta:
    """What a model says about one of its outputs.

    Examples:
        >>> from mindspore_lite.tensor import TensorMeta
        >>> TensorMeta(name="prob", shape=[1, 1000]).shape
        [1, 1000]
    """

    name: str = ""
    dtype: DataType | None = DataType.UNKNOWN
    shape: list[int] = field(default_factory=list)
    format: Format = Format.DEFAULT
    element_num: int = 0
    data_size: int = 0

    def __str__(self) -> str:
        return _describe(self)

    def __getattr__(self, name: str) -> Any:
        if hasattr(Tensor, name) and not name.startswith("_"):
            raise AttributeError(
                f"TensorMeta has no {name!r}: get_outputs() describes the outputs before a run; "
                "their data is in the Tensors that predict() returns"
            )
        raise AttributeError(f"'TensorMeta' object has no attribute {name!r}")


class Tensor:
    """Typed data with a name, a shape and a format, read and written as a NumPy array.

    Four ways to make one: `Tensor()`, a float32 scalar; `Tensor(shape=..., dtype=...)`, a buffer
    whose memory is made on first use; `Tensor(array)`, which shares the memory of a C-contiguous
    array of native byte order and copies any other; `Tensor(other)`, an independent copy.

    Args:
        tensor: The array or Tensor to take the data from.
        shape: The shape of a new buffer; with `tensor`, the shape that it must have.
        dtype: The element type of a new buffer; with `tensor`, the type that it must have.
        device: 'gpu:index' or 'ascend:index', to place the data on that card: it is copied there
            and back, and no memory is shared with the host.

    Raises:
        TypeError: An argument is of the wrong type, or shape or dtype differ from those of tensor.
        ValueError: Only one of shape and dtype is given, or the shape has a negative dim.
        RuntimeError: The device is not there.

    Examples:
        >>> import numpy as np
        >>> from mindspore_lite.tensor import DataType, Tensor
        >>> tensor = Tensor(shape=[2, 3], dtype=DataType.FLOAT32)
        >>> tensor.set_data_from_numpy(np.arange(6, dtype=np.float32))
        >>> print(tensor.get_data_to_numpy())
        [[0. 1. 2.]
         [3. 4. 5.]]
    """

    # _data, where set, always has the shape _shape and the type _dtype, in C and native byte order
    __slots__ = ("__weakref__", "_card", "_data", "_device", "_dtype", "_format", "_name", "_shape")

    _name: str
    _shape: tuple[int, ...]
    _dtype: np.dtype[Any]
    _format: Format
    _data: Array | None
    _device: str  # not set on the host, where nearly all tensors are
    _card: Any  # the same as _data, in PyTorch's hands; set on a card only, where _data is None

    def __init__(
        self,
        tensor: Tensor | Array | None = None,
        shape: Sequence[int] | Array | None = None,
        dtype: DataType | None = None,
        device: str | None = None,
    ) -> None:
        dims = None if shape is None else _checked_shape(shape)
        if dtype is not None:
            checks.instance("dtype", dtype, DataType)
        place = None if device is None else _checked_device(device)
        self._name, self._format, self._data = "", Format.NCHW, None
        if tensor is None:
            self._shape, self._dtype = _new_buffer(dims, dtype, device)
        elif isinstance(tensor, Tensor):
            self._name, self._format = tensor._name, tensor._format
            self._shape, self._dtype = tensor._shape, tensor._dtype
            self._data = None if tensor._data is None else tensor._data.copy()
            if hasattr(tensor, "_card") and place is None:  # else it need not pass through the host
                self._data = tensor._filled()
            self._check_agrees(dims, dtype, "tensor")
        else:
            if type(tensor) is not np.ndarray:
                tensor = foreign_arrays.plain(
                    "tensor",
                    tensor,
                    "MindSpore Lite's Tensor._tensor or numpy ndarray",
                    host_array,
                )
            self._data = _in_c_order(tensor, _element_type(tensor)).view()
            self._shape, self._dtype = self._data.shape, self._data.dtype
            self._check_agrees(dims, dtype, "numpy")
        if place is not None:
            self._device = place
            self._move(getattr(tensor, "_card", None))

    @classmethod
    def _wrap(cls, name: str, array: Array) -> Tensor:
        """A tensor around an array that is known to be C-contiguous and of native byte order."""
        tensor = cls.__new__(cls)
        tensor._name = name
        tensor._shape = array.shape
        tensor._dtype = array.dtype
        tensor._format = Format.NCHW
        tensor._data = array
        return tensor

    @classmethod
    def _unfilled(cls, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Tensor:
        """A tensor without data, of any NumPy type, as an input of a model is before it is set."""
        tensor = cls()
        tensor._name, tensor._shape, tensor._dtype = name, shape, dtype
        return tensor

    @classmethod
    def _on_card(cls, name: str, data: Any) -> Tensor:
        """A tensor around a tensor of PyTorch that lies on a card, in C order."""
        memory = _memory()
        tensor = cls._unfilled(name, tuple(data.shape), memory.numpy_type(data))
        tensor._device, tensor._card = memory.name_of(data), data
        return tensor

    @classmethod
    def from_dlpack(cls, array: Any) -> Tensor:
        """A tensor in the memory of another library's array: of PyTorch, CuPy, JAX, NumPy, ...

        It stays where it is, on the host or on a card. Memory that is not in C order is copied.

        Args:
            array: Whatever has `__dlpack__` and `__dlpack_device__`.

        Raises:
            TypeError: It has not, or its elements have a type that tensors cannot hold.
            RuntimeError: Its owner does not give it, or PyTorch is needed and not there.

        Examples:
            >>> array = np.arange(3, dtype=np.int32)
            >>> tensor = Tensor.from_dlpack(array)
            >>> array[0] = 7
            >>> tensor.get_data_to_numpy()
            array([7, 1, 2], dtype=int32)
        """
        if not hasattr(array, "__dlpack__") or not hasattr(array, "__dlpack_device__"):
            raise checks.wrong_type("array", "an array that has __dlpack__", array)
        array = foreign_arrays.negated(array)
        try:
            if not foreign_arrays.on_host(array):
                return cls._on_card("", _memory().from_dlpack(array))
            return cls(host_array(array))
        except (BufferError, RuntimeError) as exc:
            if isinstance(exc, LiteError):
                raise
            raise InputError(f"the array cannot be taken over: {exc}") from exc

    def __dlpack__(self, **asked: Any) -> Any:
        """The memory, for another library that shares it from then on."""
        given = {name: value for name, value in asked.items() if value is not None}
        data = self._exported()
        if isinstance(data, np.ndarray):
            return data.__dlpack__(**given)
        return _memory().exported(data, **given)

    def __dlpack_device__(self) -> tuple[int, int]:
        """Kind and number of the device, as DLPack counts them."""
        kind, number = self._exported().__dlpack_device__()
        return int(kind), int(number)

    @property
    def name(self) -> str:
        """The name; in the tensors of a model, that of the model's input or output."""
        return self._name

    @name.setter
    def name(self, name: str) -> None:
        self._name = checks.string("name", name)

    @property
    def dtype(self) -> DataType | None:
        """The element type, or None where the API has no name for it; a new one drops the data."""
        return _MEMBERS.get(self._dtype)

    @dtype.setter
    def dtype(self, dtype: DataType) -> None:
        wanted = _NUMPY[checks.instance("dtype", dtype, DataType)]
        if wanted != self._dtype:
            self._dtype = wanted
            self._drop()

    @property
    def shape(self) -> list[int]:
        """The dims, -1 where not known yet; a new shape drops the data unless it holds as many."""
        return list(self._shape)

    @shape.setter
    def shape(self, shape: Sequence[int] | Array) -> None:
        dims = _checked_shape(shape)
        if _count(dims) != _count(self._shape) or min((*dims, *self._shape), default=0) < 0:
            self._drop()
        elif self._data is not None:
            self._data = self._data.reshape(dims)
        elif getattr(self, "_card", None) is not None:
            self._card = self._card.reshape(dims)
        self._shape = dims

    @property
    def format(self) -> Format:
        """What the dims stand for."""
        return self._format

    @format.setter
    def format(self, format: Format) -> None:
        self._format = checks.instance("format", format, Format)

    @property
    def element_num(self) -> int:
        """The number of elements; 0 while a dim is not known."""
        return _count(self._shape)

    @property
    def data_size(self) -> int:
        """The size of the data in bytes."""
        return _count(self._shape) * self._dtype.itemsize

    @property
    def device(self) -> str:
        """Where the data lies: "None:-1" is the host, "gpu:0" a card."""
        return getattr(self, "_device", "None:-1")

    def set_data_from_numpy(self, numpy_obj: Array) -> None:
        """Take the data of an array; name, shape and format stay as they are.

        The memory of a C-contiguous array of native byte order is shared, any other array is
        copied; so is every array if the tensor is on a card. Arrays of PyTorch, JAX and others are
        taken over by DLPack. A flat array, or one without the batch axis, is taken as it lies in
        memory; one of as many dims must have this tensor's shape. A BFLOAT16 tensor takes arrays of
        ml_dtypes.bfloat16, and float32 ones, which are rounded.

        Raises:
            TypeError: It is no array, or its elements have a type that tensors cannot hold.
            RuntimeError: The element type, size or shape is not that of this tensor.

        Examples:
            >>> tensor = Tensor(shape=[2], dtype=DataType.INT32)
            >>> tensor.set_data_from_numpy(np.array([1, 2], np.int32))
        """
        if type(numpy_obj) is not np.ndarray:
            numpy_obj = foreign_arrays.plain("numpy_obj", numpy_obj, "numpy.ndarray", host_array)
        numpy_obj = rounded(numpy_obj, self._dtype)
        native = numpy_obj.dtype.newbyteorder("=")
        if native != self._dtype or not native.itemsize:
            raise InputError(
                f"data type not equal! Numpy type: {_element_type(numpy_obj)}, "
                f"Tensor type: {self._dtype}; convert the array with astype()",
                input_name=self._name,
            )
        unknown = min(self._shape, default=0) < 0
        if unknown or numpy_obj.nbytes != self.data_size:
            raise InputError(
                f"data size not equal! Numpy size: {numpy_obj.nbytes}, Tensor size: "
                f"{self.data_size}; tensor {self._name!r} has shape {self.shape}"
                + ("; call Model.resize() to give it a size" if unknown else ""),
                input_name=self._name,
            )
        if not layouts.taken_as_it_lies(self._shape, numpy_obj.shape):
            raise ShapeError(
                f"data shape not equal! Numpy shape: {list(numpy_obj.shape)}, Tensor shape: "
                f"{self.shape}, of tensor {self._name!r}; "
                f"{layouts.remedy(self._shape, numpy_obj.shape)}",
                input_name=self._name,
            )
        data = _in_c_order(numpy_obj, self._dtype).reshape(self._shape)
        if hasattr(self, "_card"):
            self._card = _memory().filled(self._card, data, self._device)
        else:
            self._data = self._apart(data)

    def get_data_to_numpy(self) -> Array:
        """The data as an array of this tensor's shape, without a copy: it may be written to.

        A tensor whose data was never set gets zeros. What lies on a card is copied to the host.

        Raises:
            RuntimeError: A dim is not known yet, or the tensor has no element type.

        Examples:
            >>> Tensor(shape=[2], dtype=DataType.INT32).get_data_to_numpy()
            array([0, 0], dtype=int32)
        """
        data = self._made()
        # a view: giving the result another shape in place must not reach into this tensor
        return _memory().to_host(data) if hasattr(self, "_card") else self._apart(data.view())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """The data for NumPy, in the same memory unless it lies on a device or `copy` is True.

        Raises:
            ValueError: copy is False, and the data lies on a device or has another type.
        """
        wanted = self._dtype if dtype is None else np.dtype(dtype)
        if copy is False and (hasattr(self, "_device") or wanted != self._dtype):
            raise ValueError(
                f"tensor {self._name!r} of {self._dtype} on {self.device!r} cannot become a host "
                f"array of {wanted} without a copy; leave copy=False out"
            )
        data = self.get_data_to_numpy()
        if wanted != self._dtype:
            return data.astype(wanted)
        return data.copy() if copy and not hasattr(self, "_device") else data

    def __len__(self) -> int:
        if not self._shape or self._shape[0] < 0:
            raise TypeError(f"a tensor of shape {self.shape} has no len()")
        return self._shape[0]

    def __iter__(self) -> Iterator[Any]:
        if not self._shape:
            raise TypeError("a tensor of shape [] cannot be iterated: it is a single number")
        return iter(self.get_data_to_numpy())

    def __bool__(self) -> bool:
        """True, as of any object: `if tensor` asks whether there is one, not what it holds."""
        return True

    def __repr__(self) -> str:
        kind = self._dtype if self.dtype is None else self.dtype
        return f"Tensor({self._name!r}, shape={self.shape}, dtype={kind}, device={self.device!r})"

    def __str__(self) -> str:
        return f"{_describe(self)}\ndevice: {self.device}."

    def _apart(self, data: Array) -> Array:
        """A copy where data goes to a device or comes from it, else the data itself."""
        return data.copy() if hasattr(self, "_device") else data

    def _made(self) -> Any:
        """The data, made of zeros if it was never set: an array, or what lies on a card."""
        if self._data is None and getattr(self, "_card", None) is None:
            if min(self._shape, default=0) < 0:
                raise ShapeError(
                    f"tensor {self._name!r} has shape {self.shape} and so no data yet; "
                    "call Model.resize() first"
                )
            if not self._dtype.itemsize:
                raise InputError(f"tensor {self._name!r} has {self.dtype}; set its dtype first")
            if hasattr(self, "_card"):
                self._card = _memory().zeros(self._shape, self._dtype, self._device)
            else:
                self._data = np.zeros(self._shape, self._dtype)
        return self._card if self._data is None else self._data

    def _exported(self) -> Any:
        """What passes the memory on to other libraries."""
        data = self._made()
        if isinstance(data, np.ndarray) and data.dtype.name == "bfloat16":
            return _memory().shared_by_host(data)
        return data

    def _move(self, source: Any) -> None:
        """Take the data to the device; `source` is what lies on a card, or None."""
        kind, _, number = self._device.partition(":")
        what, instead = (
            f"a tensor on device {self._device!r}",
            "leave device out: the host holds it",
        )
        if kind == "ascend" and ascend.require(what, instead):
            ascend.check_device(f"a tensor on {self._device!r}", int(number))
            found = self._data if source is None else _memory().to_host(source)
            self._data = None if found is None else self._apart(found)
            return
        memory = _memory()
        memory.check(self._device)
        source = self._data if source is None else source
        self._card = None if source is None else memory.placed(source, self._device)
        self._data = None

    def _drop(self) -> None:
        """Forget the data."""
        self._data = None
        if hasattr(self, "_card"):
            self._card = None

    def _on(self, device: str | None) -> Any:
        """What lies on this very device, in PyTorch's words "cuda:0"; None elsewhere."""
        found = getattr(self, "_card", None)
        return found if found is not None and str(found.device) == device else None

    def _settle(self) -> None:
        """Let work that the calling thread has under way on a card's data come to its end."""
        _memory().settle(self._card)

    def _filled(self) -> Array | None:
        """The data in the tensor's shape on the host, or None if it was never set."""
        if getattr(self, "_card", None) is not None:
            found: Array = _memory().to_host(self._card)
            return found
        return self._data

    def _reshape(self, shape: Sequence[int]) -> None:
        """Follow a resize of the model: data of another shape is no longer of use."""
        if tuple(shape) != self._shape:
            self._shape = tuple(shape)
            self._drop()

    def _takes_results(self) -> bool:
        """Whether a result can be written into the memory at hand, or there is none."""
        return self._data is None or self._data.flags.writeable

    def _fill(self, array: Any) -> None:
        """Take a result: into the memory at hand where it fits, else in its place."""
        if hasattr(self, "_card"):
            self._card = _memory().filled(self._card, array, self._device)
            self._shape, self._dtype = tuple(array.shape), _memory().numpy_type(self._card)
            return
        if not isinstance(array, np.ndarray):
            array = _memory().to_host(array)
        if self._data is not None and self._shape == array.shape and self._dtype == array.dtype:
            np.copyto(self._data, array)
        else:
            self._shape, self._dtype, self._data = array.shape, array.dtype, array

    def _check_agrees(
        self, dims: tuple[int, ...] | None, dtype: DataType | None, source: str
    ) -> None:
        """What the caller says about the source must be so; tests look for these very words."""
        if dims is not None and dims != self._shape:
            raise TypeError(
                f"user set shape is not equal numpy shape: got {list(dims)}, "
                f"the {source} has {self.shape}"
            )
        if dtype is not None and dtype is not self.dtype:
            raise TypeError(
                f"user set dtype is not equal {source} dtype: got {dtype}, "
                f"the {source} has {self.dtype}"
            )


def rounded(array: Array, dtype: np.dtype[Any]) -> Array:
    """A float32 array as bfloat16 where that is wanted: NumPy has no such type of its own."""
    if dtype.name == "bfloat16" and array.dtype.newbyteorder("=") == np.float32:
        return array.astype(dtype)
    return array


def _describe(what: Tensor | TensorMeta) -> str:
    labels = ("name", "dtype", "shape", "format", "element_num", "data_size")
    return ",\n".join(f"{label}: {getattr(what, label)}" for label in labels) + "."


def _count(shape: tuple[int, ...]) -> int:
    return 0 if min(shape, default=0) < 0 else math.prod(shape)


def _checked_shape(shape: object) -> tuple[int, ...]:
    dims = tuple(checks.integers("shape", shape, "list or tuple"))
    if math.prod(max(abs(dim), 1) for dim in dims) > _MAX_ELEMENTS:
        raise ValueError(f"shape {list(dims)} has more elements than fit into memory")
    return dims


def host_array(array: Any) -> Array:
    """The memory of another library's array on the host."""
    try:
        return np.from_dlpack(array)
    except (BufferError, RuntimeError):
        if importlib.util.find_spec("torch") is None:
            raise
    found: Array = _memory().host_from_dlpack(array)  # PyTorch knows bfloat16, NumPy does not
    return found


def _memory() -> ModuleType:
    """What knows of tensors on cards, and of types that NumPy does not know.

    Raises:
        EngineUnavailableError: PyTorch is not installed.
    """
    try:
        from mindspore_lite.engines.torch import memory
    except (ImportError, OSError) as exc:
        raise EngineUnavailableError(
            "data on a card, and bfloat16 by DLPack, need PyTorch, which cannot be imported "
            f"({exc}): {pip_install('gpu')}"
        ) from exc
    return memory


def _checked_device(device: object) -> str:
    kind, colon, index = checks.string("device", device).partition(":")
    if ":" in index:
        raise TypeError(f"device must be 'ascend:index' or 'gpu:index', but got {device!r}")
    if kind.lower() not in ("ascend", "gpu"):
        raise TypeError(f"now only support ascend device and gpu, but got {device!r}")
    if colon and not (index.isascii() and index.isdigit()):
        raise TypeError(f"device id should >= 0, but got {device!r}")
    if len(index) > 10 or int(index or 0) > _MAX_DEVICE_INDEX:
        raise ValueError(f"device id should be at most {_MAX_DEVICE_INDEX}, but got {device!r}")
    return f"{kind.lower()}:{int(index or 0)}"


def _new_buffer(
    dims: tuple[int, ...] | None, dtype: DataType | None, device: str | None
) -> tuple[tuple[int, ...], np.dtype[Any]]:
    if dims is None and dtype is None and device is None:
        return (), np.dtype("float32")
    if dims is None or dtype is None:
        missing = [word for word, got in (("shape", dims), ("dtype", dtype)) if got is None]
        raise ValueError(
            f"Tensor() lacks {' and '.join(missing)}; a tensor without an array needs "
            "both shape and dtype"
        )
    if min(dims, default=0) < 0:
        raise ValueError(f"shape must not have a negative dim, but got {list(dims)}")
    return dims, _NUMPY[dtype]


def _element_type(array: Array) -> np.dtype[Any]:
    """The array's element type in native byte order, if the API has a name for it."""
    native = array.dtype.newbyteorder("=")
    if not native.itemsize or native not in _MEMBERS:
        raise TypeError(f"Unsupported numpy dtype value: {array.dtype}")
    return native


def _in_c_order(array: Array, dtype: np.dtype[Any]) -> Array:
    # not ascontiguousarray: that would turn a scalar into an array with one axis
    return np.asarray(array, dtype=dtype, order="C")
