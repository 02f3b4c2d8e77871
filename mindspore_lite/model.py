"""Model: loads a model file and runs it."""

from __future__ import annotations

import mmap
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import get_ident

import numpy as np

from mindspore_lite.context import Context
from mindspore_lite.core import checks
from mindspore_lite.core.boundary import boundary, reraise
from mindspore_lite.engines.group import group_of
from mindspore_lite.errors import ClosedError, EngineError, LiteError, ModelFileError
from mindspore_lite.graph.source import ModelInput
from mindspore_lite.mindir.decrypt import checked_key
from mindspore_lite.model_group import Member
from mindspore_lite.model_group import ModelGroup as ModelGroup
from mindspore_lite.model_group import ModelGroupFlag as ModelGroupFlag
from mindspore_lite.runner import ModelParallelRunner as ModelParallelRunner
from mindspore_lite.serving import feeds, interrupt, update
from mindspore_lite.serving.service import Described, existing, unnamed, warn_unbuilt
from mindspore_lite.serving.single import MODEL_INFO_KEYS, SingleService
from mindspore_lite.settings.formats import ModelType as ModelType
from mindspore_lite.settings.read import Layer, read_layers
from mindspore_lite.settings.spec import settle
from mindspore_lite.tensor import Tensor, TensorMeta

Buffer = bytes | bytearray | memoryview | mmap.mmap


class Model(Member):
    """A model that is loaded once and run many times.

    `predict` may be called from several threads at once, also while `update_weights` changes the
    weights; building, resizing and closing may not. A Model is released by `close()`, by leaving a
    `with` block, or when it is no longer referred to.

    Examples:
        >>> import numpy as np
        >>> import mindspore_lite as mslite
        >>> from mindspore_lite.cli.demo import DIGITS_MODEL
        >>> with mslite.Model() as model:
        ...     model.build_from_file(str(DIGITS_MODEL), mslite.ModelType.MINDIR)
        ...     (probabilities,) = model.predict([np.zeros((1, 1, 8, 8), np.float32)])
        >>> probabilities.shape
        [1, 10]
    """

    _info_keys = MODEL_INFO_KEYS

    def __init__(self) -> None:
        super().__init__()
        self.lora_name_map: dict[str, str] = {}
        self.provider = ""
        self._inputs: list[Tensor] = []
        self._closed = False
        self._main_runs = interrupt.MainRuns()

    def build_from_file(
        self,
        model_path: str | os.PathLike[str],
        model_type: ModelType,
        context: Context | None = None,
        config_path: str | os.PathLike[str] = "",
        config_dict: dict[str, dict[str, str]] | None = None,
        dec_key: bytes | None = None,
        dec_mode: str = "AES-GCM",
        dec_num_parallel: int = 0,
    ) -> None:
        """Load and compile a model file; a build that fails leaves the object as it was.

        Args:
            model_path: The file.
            model_type: MINDIR or ONNX.
            context: Where and how to run; None is the CPU with automatic settings. It is only read.
            config_path: A configuration file, `""` for none; docs/settings.md lists all settings.
            config_dict: Configuration entries, which count before those of the file.
            dec_key: The key of an encrypted model; it is kept, for resize(), but never stored.
            dec_mode: How the model is encrypted: "AES-GCM", "AES-CBC" or "SM4-CBC".
            dec_num_parallel: With how many threads to decrypt; 0 takes the cores there are.

        Raises:
            TypeError: An argument is of the wrong type.
            ValueError: An argument has a value that it cannot have.
            RuntimeError: A file is missing or cannot be loaded, or the target is not there.
        """
        model_path = checks.path("model_path", model_path)
        kind = checks.instance("model_type", model_type, ModelType).name
        context = Context() if context is None else checks.instance("context", context, Context)
        config_path = checks.path("config_path", config_path)
        existing(model_path)
        self._check_unbuilt("build_from_file")
        self.model_path_ = model_path
        layers = read_layers("build_from_file", config_path, config_dict)
        key = checked_key(dec_key, dec_mode, dec_num_parallel)
        path = Path(model_path).absolute()  # it is read again later, wherever the program is then
        self._build("build_from_file", ModelInput(kind, path, key=key), context, layers)

    def build_from_buffer(
        self,
        model_bytes: Buffer,
        weight_bytes: Buffer | ModelType | None = None,
        model_type: ModelType | Context | None = None,
        context: Context | None = None,
        config_path: str | os.PathLike[str] = "",
        config_dict: dict[str, dict[str, str]] | None = None,
        dec_key: bytes | None = None,
        dec_mode: str = "AES-GCM",
        dec_num_parallel: int = 0,
    ) -> None:
        """Load and compile a model that is in memory; otherwise as build_from_file().

        Without a data file it may be left out, as build_from_file() does: (bytes, type, context).
        The caller may reuse the memory afterwards: `bytes`, which cannot change, are kept, and
        anything else is copied.

        Args:
            model_bytes: The content of a model file: bytes, bytearray, memoryview or mmap.
            weight_bytes: The content of its data file, where the weights of a MindIR lie in one. A
                data file on disk is found through `mindir_path` of section `model_file` in the
                configuration: the path that the model file would have next to it.
            model_type: MINDIR or ONNX.
            context: Where and how to run; None is the CPU with automatic settings. It is only read.
            config_path: A configuration file, `""` for none.
            config_dict: Configuration entries, which count before those of the file.
            dec_key: The key of an encrypted model.
            dec_mode: How it is encrypted.
            dec_num_parallel: With how many threads to decrypt.

        Raises:
            TypeError: An argument is of the wrong type.
            ValueError: An argument has a value that it cannot have.
            RuntimeError: The model cannot be loaded, or the target is not there.
        """
        if isinstance(weight_bytes, ModelType):
            weight_bytes, model_type, context = None, weight_bytes, model_type or context
        data = checks.content("model_bytes", model_bytes)
        weights = None if weight_bytes is None else checks.content("weight_bytes", weight_bytes)
        kind = checks.instance("model_type", model_type, ModelType).name
        context = Context() if context is None else checks.instance("context", context, Context)
        config_path = checks.path("config_path", config_path)
        if not data:
            raise ModelFileError("build_from_buffer failed, model_bytes is empty")
        self._check_unbuilt("build_from_buffer")
        self.model_path_ = ""
        layers = read_layers("build_from_buffer", config_path, config_dict)
        key = checked_key(dec_key, dec_mode, dec_num_parallel)
        given = ModelInput(kind, data=data, weights=weights, key=key)
        self._build("build_from_buffer", given, context, layers)

    def get_inputs(self) -> list[Tensor]:
        """The model's inputs in order, to be filled and passed to predict(); [] before the build.

        Every call returns the same Tensors. resize() changes their shapes in place. A model that
        is not built has none, and warns.
        """
        if self._service is None:
            warn_unbuilt("get_inputs", self._closed)
        return list(self._inputs)

    def get_outputs(self) -> tuple[TensorMeta, ...]:
        """What is known of the outputs before a run; a dim known only afterwards is -1."""
        if self._service is None:
            warn_unbuilt("get_outputs", self._closed)
            return ()
        return feeds.metas(self._service.outputs)

    def predict(
        self,
        inputs: Sequence[Tensor | np.ndarray] | Mapping[str, Tensor | np.ndarray],
        outputs: Sequence[Tensor] | None = None,
    ) -> list[Tensor]:
        """Run the model once and return its outputs, which own their memory.

        A contiguous array is read without a copy. An array of another shape but the right size is
        taken as it lies in memory; dims of -1 take any size. Tensors on the model's card stay
        there; if all inputs are such, so are the outputs. Ctrl-C ends the call and stops the run.

        Args:
            inputs: One Tensor or array per model input, in the order of get_inputs(), or by name.
            outputs: Tensors to write the results into; None makes new ones.

        Raises:
            TypeError: An input is neither Tensor nor array.
            RuntimeError: Count, size or type differ from the model's, or the engine failed.
        """
        built = self._usable("predict failed! ").built
        try:
            device = built.session.info.device
            given = feeds.arrays(built.inputs, inputs, device=device)
            wanted = feeds.checked_outputs(built.outputs, outputs)
        except (LiteError, MemoryError) as exc:
            reraise(exc, "predict failed! ")
        try:  # a try block costs nothing, a `with` block does
            if get_ident() == interrupt.MAIN:  # which Ctrl-C must reach
                found = self._main_runs.run(built.session, given)
            else:
                found = built.session.run(given)
            return feeds.tensors(built.outputs, found, wanted)
        except Exception as exc:  # noqa: BLE001 - it always raises
            reraise(exc, "predict failed! ")

    def resize(self, inputs: Sequence[Tensor], dims: Sequence[Sequence[int]]) -> None:
        """Give the inputs other shapes; data of another shape that was set in them is dropped.

        Sizes that the file left open (-1) change at no cost. Sizes that it fixed change too, where
        its layers allow that: the first time the model is compiled again.

        Args:
            inputs: The Tensors of get_inputs(), in any order.
            dims: One shape per Tensor.

        Raises:
            TypeError: An argument is of the wrong type.
            ValueError: There are not as many shapes as inputs.
            RuntimeError: The model cannot take these shapes; it stays as it was.
        """
        shapes = self._in_model_order(inputs, _checked_dims(inputs, dims))
        service = self._usable("resize failed! Error is ")
        with boundary("resize failed! Error is "):
            service.resize(shapes)
        for tensor, shape in zip(self._inputs, shapes, strict=True):
            tensor._reshape(shape)

    @property
    def _described(self) -> Described | None:
        return self._service

    def update_weights(self, weights: Sequence[Sequence[Tensor]]) -> None:
        """Change weights that were named in `variable_weights_file` when the model was built.

        All of them change, or none. Runs under way finish on the weights they began with; those
        that begin after the call use the new ones. What a Tensor holds is copied.

        Args:
            weights: Lists of Tensors, applied one after the other. A Tensor with a name replaces
                the weight of that name, one without a name that at its place in the file. Weights
                that are not given stay as they are. `[]` restores all weights of the model file.

        Raises:
            TypeError: The argument is no list of lists of Tensors.
            RuntimeError: The model is not built, a weight is not one of those named, or a Tensor
                has another shape or type than its weight.
        """
        groups = update.checked(weights)
        if self._service is None and not self._closed:
            raise EngineError(f"{update.FAILED}Session is null, please build model first!")
        service = self._usable(update.FAILED)
        with boundary(update.FAILED):
            service.update_weights(groups)

    def close(self) -> None:
        """Release the model; runs under way in other threads finish. Harmless when repeated."""
        if self._service is not None:
            self._service.close()
            self._closed = True
        self._service, self._inputs = None, []

    def _check_unbuilt(self, doing: str) -> None:
        if self._service is not None:
            raise EngineError(
                f"{doing} failed! This Model is built from {self._service.name} already; "
                "make another Model, or close() this one first"
            )

    def _build(
        self, doing: str, given: ModelInput, context: Context, layers: Sequence[Layer]
    ) -> None:
        with boundary(f"{doing} failed! Error is "):
            spec = unnamed(settle(context, layers, stacklevel=4))
            group = self._group or (group_of(str(given.path)) if given.path else None)
            service = SingleService(given, spec, group)
        self._service, self._closed = service, False
        self._inputs = [Tensor._unfilled(i.name, i.shape, i.dtype) for i in service.inputs]

    def _in_model_order(
        self, inputs: Sequence[Tensor], shapes: list[tuple[int, ...]]
    ) -> list[tuple[int, ...]]:
        """Shapes follow their Tensors where those are the model's own, whatever their order."""
        places = {id(tensor): at for at, tensor in enumerate(self._inputs)}
        found = {
            places.get(id(tensor)): shape for tensor, shape in zip(inputs, shapes, strict=True)
        }
        if set(found) != set(range(len(shapes))):
            return shapes
        return [found[at] for at in range(len(shapes))]

    def _usable(self, prefix: str) -> SingleService:
        if self._service is not None:
            return self._service
        if self._closed:
            raise ClosedError(f"{prefix}the model was closed; build it again to use it")
        raise EngineError(f"{prefix}the model is not built; call build_from_file() first")


def _checked_dims(inputs: object, dims: object) -> list[tuple[int, ...]]:
    tensors = checks.sequence("inputs", inputs, "list or tuple of Lite Tensor")
    shapes = checks.sequence("dims", dims, "list or tuple of shape")
    checks.instances("inputs", tensors, Tensor)
    for shape in shapes:
        checks.sequence("dims element", shape, "list or tuple of int")
    found = [tuple(_checked_shape(shape)) for shape in shapes]
    if len(tensors) != len(found):
        raise ValueError(
            f"inputs' size does not match dims' size: {len(tensors)} inputs, {len(found)} shapes"
        )
    return found


def _checked_shape(shape: Sequence[object]) -> list[int]:
    return [checks.integer("dims element's element", dim) for dim in shape]
