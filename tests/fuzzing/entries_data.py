"""Entries that take other files of the user: weights, settings, archives, calibration data."""

from __future__ import annotations

import contextlib
import functools
import io
import warnings
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import numpy as np
from fuzzing.corpus import SEEDS
from fuzzing.damage import Damage
from support.models import dense_net

import mindspore_lite as mslite
from mindspore_lite.conversion import from_pytorch
from mindspore_lite.conversion.settings_file import read_settings_file
from mindspore_lite.conversion.sources import Origin, load
from mindspore_lite.converter import FmkType

Act = Callable[[], object]

_CONFIG = """\
[common_context]
engine=onnxruntime
variable_weights_list=w
[cpu_context]
precision_mode=enforce_fp32
allow_tf32=true
tuning=off
batch_buckets=1,2,4
[ascend_context]
variable_weights_file=names
variable_weights_mode=delta
[model_file]
mindir_path=model.mindir
[build]
max_nodes=1000
max_fold_bytes=1M
max_seconds=10
"""
_WORDS = (
    *("engine", "torch", "openvino", "auto", "profile", "precision_mode", "preferred_fp16"),
    *("preferred_bf16", "tuning", "fast", "batch_buckets", "1,2", "variable_weights_file", "names"),
    *("variable_weights_list", "w", "w,b", "variable_weights_lines", "variable_weights_mode"),
    *("delta", "replace", "mindir_path", "shareable_weight_pid_list", "max_nodes", "max_seconds"),
    *("max_fold_bytes", "common_context", "cpu_context", "ascend_context", "build", "model_file"),
)
_WEIGHTS = ("weights.safetensors", "weights.npz", "types.safetensors", "types.npz")
_NPY_HEAD = 128  # bytes of the header that np.save writes
_QUANT = """\
[common_quant_param]
quant_type=FULL_QUANT
bit_num=8
min_quant_weight_size=0
min_quant_weight_channel=4
[mixed_bit_weight_quant_param]
init_scale=0.02
[full_quant_param]
activation_quant_method=MAX_MIN
bias_correction=true
per_channel=true
[data_preprocess_param]
calibrate_path=x:calibration
calibrate_size=2
input_type=BIN
[ascend_context]
input_shape=x:[2,64]
input_format=ND
[registry]
disable_fusion=off
"""
_QUANT_WORDS = (
    *(
        "quant_type",
        "WEIGHT_QUANT",
        "DYNAMIC_QUANT",
        "FULL_QUANT",
        "bit_num",
        "KL",
        "REMOVAL_OUTLIER",
    ),
    *("activation_quant_method", "calibrate_path", "x:calibration", "x:pictures", "input_type"),
    *("IMAGE", "image_to_format", "RGB", "GRAY", "resize_width", "8", "normalize_mean", "[1,2,3]"),
    *(
        "data_preprocess_param",
        "full_quant_param",
        "common_quant_param",
        "x:[-1,64]",
        "disable_fusion",
    ),
)


def weights(damage: Damage, folder: Path) -> Act:
    """Load a file of weights, and give them to a model."""
    seed = SEEDS / damage.choice(_WEIGHTS)
    data = seed.read_bytes()
    if seed.suffix == ".npz":
        data = damage.archive(data, lambda _, member: _array(damage, member))
    else:
        data = _safetensors(damage, data)
    path = folder / seed.name
    path.write_bytes(data)
    return lambda: _updated(path)


def lora(damage: Damage, folder: Path) -> Act:
    """Merge a LoRA file, with the configuration next to it, and give it to a model."""
    path = folder / "adapter_model.safetensors"
    path.write_bytes(_safetensors(damage, (SEEDS / "lora.safetensors").read_bytes()))
    settings = b'{"lora_alpha": 4, "alpha_pattern": {"m": 2}, "use_rslora": true}'
    if damage.harmless or damage.chance(0.5):
        settings = damage.json(settings)
    (folder / "adapter_config.json").write_bytes(settings)

    def act() -> None:
        model = _model()
        model.update_weights([mslite.load_lora(path)])
        model.predict([np.ones((2, 3), np.float32)])
        model.update_weights([])

    return act


def config(damage: Damage, folder: Path) -> Act:
    """Build a good model with a damaged configuration: a file, or a dict of the same sections."""
    (folder / "model.mindir").write_bytes(dense_net())
    (folder / "names").write_bytes(damage.bytes(b"w\n") if damage.chance(0.2) else b"w\n")
    path = folder / "model.ini"
    path.write_bytes(damage.lines(_CONFIG, _WORDS))
    if damage.chance(0.2):
        return lambda: read_settings_file(path)
    as_dict = _sections(path.read_bytes()) if damage.chance(0.3) else None
    return lambda: _configured(folder / "model.mindir", path, as_dict)


def pt2(damage: Damage, folder: Path) -> Act:
    """Load an exported PyTorch program."""
    data = (SEEDS / "convolutional.pt2").read_bytes()

    def change(name: str, member: bytes) -> bytes:
        return damage.json(member) if name.endswith(".json") else damage.bytes(member)

    path = folder / "net.pt2"
    path.write_bytes(damage.archive(data, change))
    # a second of torch's exporter for each program that torch can load: only for some of them
    exports = damage.chance(0.2)
    return lambda: _loaded(path, exports)


def quantise(damage: Damage, folder: Path) -> Act:
    """Quantise with calibration data: the model, the data or the settings are damaged."""
    part = damage.choice(("data", "settings", "model"))
    kind = damage.choice(("FULL_QUANT", "FULL_QUANT", "WEIGHT_QUANT", "DYNAMIC_QUANT"))
    images = damage.chance(0.3)
    model, given = _pictured() if images else _numbered()
    folders = folder / "calibration"
    folders.mkdir()
    for name, content in given.items():
        changed = damage.bytes(content) if part == "data" else content
        (folders / name).write_bytes(changed)
    path = folder / "net.onnx"
    path.write_bytes(damage.onnx(model) if part == "model" else model)
    text = _QUANT.replace("FULL_QUANT", kind)
    text = text.replace("x:calibration", f"x:{folders}")
    text = text.replace("input_type=BIN", "input_type=IMAGE") if images else text
    text = text.replace("input_shape=x:[2,64]\n", "") if images else text
    settings = folder / "quant.ini"
    settings.write_bytes(damage.lines(text, _QUANT_WORDS) if part == "settings" else text.encode())
    return lambda: _quantised(path, settings, folder / "made")


def _loaded(path: Path, exports: bool) -> None:
    skipped = mock.patch.object(from_pytorch, "_from_program", lambda program: None)
    with contextlib.nullcontext() if exports else skipped:
        load(Origin("PYTORCH", path))


def _array(damage: Damage, member: bytes) -> bytes:
    """A .npy file: anything in it, or only its elements, which leaves an array that fits."""
    if damage.chance(0.5):
        return damage.bytes(member)
    head, elements = member[:_NPY_HEAD], member[_NPY_HEAD:]
    return head + damage.bytes(elements)[: len(elements)].ljust(len(elements), b"\xff")


def _safetensors(damage: Damage, data: bytes) -> bytes:
    """Its header is JSON after a length of eight bytes."""
    if damage.harmless or damage.chance(0.4):
        return damage.bytes(data)
    size = int.from_bytes(data[:8], "little")
    header = damage.json(data[8 : 8 + size])
    return len(header).to_bytes(8, "little") + header + data[8 + size :]


def _updated(path: Path) -> None:
    found = mslite.load_weights(path)
    for tensor in found:
        tensor.get_data_to_numpy().sum()
    model = _model()
    model.update_weights([found])
    model.predict([np.ones((2, 3), np.float32)])
    model.update_weights([])


@functools.cache
def _model() -> mslite.Model:
    """One for all cases: what is updated wrongly would show in the next one."""
    model = mslite.Model()
    # the second column: what LoRA files call it
    names = {"ascend_context": {"variable_weights_lines": "w\nm.weight,w"}}
    model.build_from_buffer(dense_net(), mslite.ModelType.MINDIR, config_dict=names)
    return model


def _configured(model: Path, path: Path, as_dict: dict[str, dict[str, str]] | None) -> None:
    with mslite.Model() as built:
        built.build_from_file(
            str(model),
            mslite.ModelType.MINDIR,
            config_path="" if as_dict else str(path),
            config_dict=as_dict,
        )
        built.predict([np.ones((2, 3), np.float32)])


def _sections(data: bytes) -> dict[str, dict[str, str]]:
    """The lines of a configuration as a program would pass them."""
    found: dict[str, dict[str, str]] = {}
    section = ""
    for line in data.decode(errors="replace").splitlines():
        key, _, value = line.partition("=")
        if line.startswith("["):
            section = line.strip("[]")
        else:
            found.setdefault(section, {})[key] = value
    return found


@functools.cache
def _numbered() -> tuple[bytes, dict[str, bytes]]:
    """A network of rows, and files of them."""
    import onnx_ir as ir
    from support.quant_nets import mlp, normal

    given: dict[str, bytes] = {}
    for at in range(2):
        out = io.BytesIO()
        np.save(out, normal(2, 64, seed=at))
        given[f"{at}.npy"] = out.getvalue()
    given["2.bin"] = normal(2, 64, seed=2).tobytes()
    return ir.to_proto(mlp()).SerializeToString(), given


@functools.cache
def _pictured() -> tuple[bytes, dict[str, bytes]]:
    """A network of pictures, and two of them."""
    import onnx_ir as ir
    from PIL import Image
    from support.quant_nets import cnn

    given: dict[str, bytes] = {}
    for kind in ("PNG", "JPEG"):
        out = io.BytesIO()
        pixels = np.arange(16 * 16 * 3, dtype=np.uint8).reshape(16, 16, 3)
        Image.fromarray(pixels).save(out, kind)
        given[f"picture.{kind.lower()}"] = out.getvalue()
    return ir.to_proto(cnn()).SerializeToString(), given


def _quantised(path: Path, settings: Path, output: Path) -> None:
    converter = mslite.Converter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        converter.convert(FmkType.ONNX, str(path), str(output), config_file=str(settings))
