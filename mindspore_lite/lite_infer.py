"""LiteInfer: runs a network of MindSpore that lives in the same process, without a file of its own.

MindSpore's `Model.predict(x, backend="lite")` makes one. MindSpore exports the network as MindIR to
a private folder, from which it is built as any other model; the folder goes with the LiteInfer.
"""

from __future__ import annotations

import importlib
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from mindspore_lite.context import Context
from mindspore_lite.core import checks
from mindspore_lite.errors import ModelFileError
from mindspore_lite.mindir.side_files import GRAPH_SUFFIX
from mindspore_lite.model import Model
from mindspore_lite.model_group import ModelGroup, ModelGroupFlag
from mindspore_lite.settings.formats import ModelType

_CONFIG_PATH = "configPath"
_GROUPS: WeakValueDictionary[int, ModelGroup] = WeakValueDictionary()


class LiteInfer(Model):
    """A MindSpore network as a model: built when it is made, then used like any Model.

    The network is exported for inference with the given inputs, whose values do not matter; its
    own mode stays as it was. Weights are those of this moment: later training does not change
    them. MindSpore must be installed; it is imported here, not before.

    Args:
        model_or_net: A `mindspore.train.Model`, whose network for predictions is taken, or a
            `mindspore.nn.Cell`.
        net_inputs: Inputs to export it with.
        context: Where and how to run; None is the CPU with automatic settings.
        model_group_id: LiteInfers of one number share equal weights.
        config: `configPath`, the path of a configuration file, and sections with their entries,
            which count before those of the file.

    Raises:
        ImportError: MindSpore is not installed, or cannot be imported.
        TypeError: An argument is of the wrong type.
        ValueError: model_or_net is neither Model nor Cell.
        RuntimeError: The network cannot be exported or built.
    """

    def __init__(
        self,
        model_or_net: Any,
        *net_inputs: Any,
        context: Context | None = None,
        model_group_id: int | None = None,
        config: dict[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._shared: ModelGroup | None = None
        mindspore = _imported()
        net = _network(mindspore, model_or_net)
        if context is not None:
            checks.instance("context", context, Context)
        path, sections = _checked(config)
        if model_group_id is not None:
            self._join(checks.integer("model_group_id", model_group_id))
        self._folder = tempfile.TemporaryDirectory(prefix="mslite-infer-")
        try:
            file = _exported(mindspore, net, net_inputs, Path(self._folder.name))
            self.build_from_file(str(file), ModelType.MINDIR, context, path, sections)
            self._fit(net_inputs)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Release the model and its folder. Harmless when repeated."""
        super().close()
        self._shared = None
        if self._folder is not None:
            self._folder.cleanup()

    def _fit(self, net_inputs: tuple[Any, ...]) -> None:
        """Give open sizes those of the given inputs: callers fill the model's own Tensors next."""
        inputs = self.get_inputs()
        shapes = [list(getattr(given, "shape", ())) for given in net_inputs]
        is_open = any(min(tensor.shape, default=0) < 0 for tensor in inputs)
        known = all(type(dim) is int and dim > 0 for shape in shapes for dim in shape)
        if is_open and known and len(shapes) == len(inputs):
            self.resize(inputs, shapes)

    def _join(self, number: int) -> None:
        self._shared = _GROUPS.get(number)  # which lives as long as a member of it
        if self._shared is None:
            self._shared = _GROUPS[number] = ModelGroup(ModelGroupFlag.SHARE_WEIGHT)
        self._shared.add_model([self])


def _imported() -> Any:
    try:
        return importlib.import_module("mindspore")
    except ImportError as exc:
        raise ImportError(
            f"For 'LiteInfer', import mindspore fail. {exc}; pip install mindspore, or export the "
            "network elsewhere and build its .mindir with Model.build_from_file"
        ) from exc


def _network(mindspore: Any, model_or_net: Any) -> Any:
    if isinstance(model_or_net, mindspore.train.Model):
        return model_or_net.predict_network
    if isinstance(model_or_net, mindspore.nn.Cell):
        return model_or_net
    raise ValueError(
        f"input model_or_net should be ms.train.Model or ms.nn.Cell, but got {type(model_or_net)}."
    )


def _checked(config: object) -> tuple[str, dict[str, dict[str, str]]]:
    """The path of a configuration file, "" for none, and sections."""
    path, sections = "", {}
    given = {} if config is None else checks.instance("config", config, dict)
    for name, value in given.items():
        checks.string("config_key", name)
        if name == _CONFIG_PATH:
            path = checks.string("config_value", value)
            continue
        for key, entry in checks.instance("config_value", value, dict).items():
            checks.string("config_value_key", key)
            checks.string("config_value_value", entry)
        sections[name] = value
    return path, sections


def _exported(mindspore: Any, net: Any, inputs: tuple[Any, ...], folder: Path) -> Path:
    """The network as a MindIR file; large ones have their weights in another."""
    try:
        with _for_inference(net):
            mindspore.export(net, *inputs, file_name=str(folder / "net"), file_format="MINDIR")
    except Exception as exc:
        raise ModelFileError(
            "build_from_file failed! Error is MindSpore cannot export the network, "
            f"{type(exc).__name__}: {exc}"
        ) from exc
    whole, graph = folder / "net.mindir", folder / f"net{GRAPH_SUFFIX}"
    return whole if whole.exists() else graph


@contextmanager
def _for_inference(net: Any) -> Iterator[None]:
    """The network in the mode of inference; every cell of it then gets its own mode back."""
    modes = [(cell, cell.training) for _, cell in net.cells_and_names()]
    phase = net.phase
    net.set_train(False)
    try:
        yield
    finally:
        for cell, mode in modes:
            cell.add_flags(training=mode)
        net.phase = phase
