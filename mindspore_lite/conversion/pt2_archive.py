"""Checks the archive of an exported PyTorch program before torch reads it.

torch.export.load is not made for files of strangers. It unpickles what the archive calls pickled,
loads compiled libraries that lie in it, evaluates the expressions of dims as Python, calls any
function that a node names below `torch`, imports what the structure of inputs names, and generates
code with the names in the file. So everything in an archive has to be on a list of harmless things
here, or loading it takes the word of the user that its maker is trusted.
"""

from __future__ import annotations

import ast
import io
import re
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mindspore_lite.conversion.setting_names import name_of
from mindspore_lite.core.json_text import read_json
from mindspore_lite.errors import ModelFileError

if TYPE_CHECKING:
    from torch.export.pt2_archive import PT2ArchiveReader

_RECORDS = re.compile(
    r"archive_format|archive_version|byteorder|\.data/\w+|extra/.*|models/\w+\.json"
    r"|data/(weights|constants)/(weight_\d+|tensor_\d+|\w+\.json|\w+\.pt)"
    r"|data/sample_inputs/\w+\.pt"
)
_PAYLOAD = re.compile(r"(weight|tensor)_\d+")
_NAME = re.compile(r"[\w.:+@/-]*")
_OPERATORS = re.compile(
    r"torch\.ops\.(aten|prims|higher_order|onnx|torchvision|quantized|quantized_decomposed)"
    r"\.(?!from_file\b)(?:(?!__)\w+|__(?:and|or|xor|lshift|rshift)__)(?:\.(?!_)\w+)?"
    r"|torch\.(_sym_sqrt|sym_\w+)|math\.[a-z0-9]+"
    r"|_operator\.(getitem|add|sub|mul|truediv|floordiv|mod|pow|neg|pos|eq|ne|lt|le|gt|ge"
    r"|and_|or_|xor|not_|lshift|rshift|index|abs)"
)
_FUNCTIONS = frozenset({  # of sympy, and those that torch adds to them
    "Symbol", "Integer", "Float", "Rational", "Add", "Mul", "Pow", "Max", "Min", "Mod", "Abs",
    "And", "Or", "Not", "Equality", "Unequality", "StrictLessThan", "StrictGreaterThan",
    "LessThan", "GreaterThan", "Piecewise", "ExprCondPair", "floor", "ceiling", "FloorDiv",
    "ModularIndexing", "Where", "PythonMod", "CleanDiv", "CeilToInt", "FloorToInt", "CeilDiv",
    "LShift", "RShift", "PowByNatural", "FloatPow", "FloatTrueDiv", "IntTrueDiv",
    "IsNonOverlappingAndDenseIndicator", "TruncToFloat", "TruncToInt", "RoundToInt",
    "RoundDecimal", "ToFloat", "Identity",
})  # fmt: skip
_WORDS = ("true", "false", "oo", "int_oo")
_STRUCTURES = (None, "builtins.list", "builtins.tuple", "builtins.dict", "collections.OrderedDict")
# arguments that stay texts, stack traces, and conditions that from_pytorch.py throws away
_FREE = ("as_string", "as_strings", "metadata", "guards_code")
_MAX_EXPRESSION = 4000  # characters; guess, real ones have some 50
_MAX_POWER = 8  # a tower of powers would keep sympy busy for ever


def check_archive(path: Path) -> None:
    """Refuse an archive that could run code of its own when torch loads it."""
    # by torch's own reader: what it finds under a name is what it will load
    from torch.export.pt2_archive import PT2ArchiveReader

    try:
        with zipfile.ZipFile(path) as archive:
            is_old = "version" in archive.namelist()
            packed = any(i.compress_type != zipfile.ZIP_STORED for i in archive.infolist())
        reader = None if is_old else PT2ArchiveReader(str(path))
    except Exception as exc:  # both readers raise many kinds
        text = str(exc).partition("\n")[0]
        raise ModelFileError(f"it is no archive made by torch.export.save: {text}") from exc
    if packed:  # some kilobytes may unpack to any size
        raise ModelFileError("its content is compressed, which torch.export.save never does")
    if reader is None:
        raise _refusal("PyTorch 2.7 or older saved it, with pickled weights")
    names = reader.get_file_names()
    if not any(name.startswith("models/") for name in names):
        raise ModelFileError("there is no exported program inside")
    for name in names:
        _check_record(reader, name)


def _check_record(reader: PT2ArchiveReader, name: str) -> None:
    if not _RECORDS.fullmatch(name):
        raise _refusal(f"it holds {name!r}, which may be compiled code")
    if name.endswith(".pt"):
        _check_pickle(reader.read_bytes(name), name)
    elif name.endswith(".json") and not name.startswith("extra/"):
        try:
            content = read_json(reader.read_bytes(name))
        except ValueError as exc:
            raise ModelFileError(f"{name!r} inside of it is no JSON: {exc}") from exc
        for key, text in _texts(content, ""):
            _CHECKS.get(key, _check_name)(text)


def _check_pickle(data: bytes, name: str) -> None:
    """What torch's restricted unpickler takes runs nothing; torch would go on without it."""
    import torch

    if not data:
        return
    try:
        torch.load(io.BytesIO(data), weights_only=True)
    except Exception as exc:  # whatever is wrong with it
        why = str(exc).partition("\n")[0][:200]
        raise _refusal(f"{name!r} inside of it holds more than tensors ({why})") from exc


def _texts(value: Any, key: str) -> Iterator[tuple[str, str]]:
    """Every text in a JSON value with the key above it, but for those that may be anything."""
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item, key)
    elif isinstance(value, dict):
        if value.get("use_pickle"):
            raise _refusal("it holds pickled objects")
        for name, item in value.items():
            yield "", name
            if not (name in _FREE and _is_flat(item)):
                yield from _texts(item, name)


def _is_flat(value: Any) -> bool:
    """Whether nothing but texts is in it: a tensor may be called `metadata`, too."""
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return isinstance(value, str) or all(isinstance(item, str) for item in items)


def _check_name(text: str) -> None:
    if not _NAME.fullmatch(text):
        raise _refusal(f"it holds {text[:80]!r} where a name belongs")


def _check_payload(text: str) -> None:
    if not _PAYLOAD.fullmatch(text):  # by other names torch tells pickled objects
        raise _refusal(f"it holds the object {text[:80]!r}, which may be pickled")


def _check_operator(text: str) -> None:
    if not _OPERATORS.fullmatch(text):
        raise _refusal(f"it calls {text[:80]!r}, which is no operator of PyTorch's own")


def _check_structure(text: str) -> None:
    """How inputs or outputs are nested: only in ways that need no import."""
    try:
        _, root = read_json(text) if text else (1, {})
        queue = [root] if root else []
        for node in queue:
            if node["type"] not in _STRUCTURES or "__enum__" in str(node["context"]):
                raise _refusal(f"its inputs or outputs are of the type {str(node['type'])[:80]!r}")
            queue += node["children_spec"]
    except (ValueError, KeyError, TypeError) as exc:
        raise ModelFileError(f"the structure of its inputs or outputs is damaged: {exc}") from exc


def _check_expression(text: str) -> None:
    """An expression for a dim, which sympy evaluates: only arithmetic."""
    try:
        if len(text) > _MAX_EXPRESSION:
            raise ValueError("too long")
        _check_term(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as exc:
        raise _refusal(f"it has the dim {text[:80]!r}, which is not plain arithmetic") from exc


def _check_term(node: ast.expr) -> None:
    match node:
        case ast.Call(func=ast.Name(id=function), args=args, keywords=keywords):
            if function not in _FUNCTIONS or not all(_is_flag(k.value) for k in keywords):
                raise ValueError(function)
            if function in ("Pow", "PowByNatural", "FloatPow", "LShift"):
                _check_power(args[-1])
            for arg in args:
                match arg:
                    case ast.Constant(value=str(name)) if function in ("Symbol", "Float"):
                        if not re.fullmatch(r"[\w.+-]{1,60}", name):
                            raise ValueError(name)
                    case _:
                        _check_term(arg)
        case ast.BinOp(left=left, op=op, right=right):
            if isinstance(op, ast.Pow | ast.LShift):
                _check_power(right)
            _check_term(left)
            _check_term(right)
        case ast.UnaryOp(operand=operand):
            _check_term(operand)
        case ast.Compare(left=left, comparators=others):
            for term in (left, *others):
                _check_term(term)
        case ast.Name(id=name):
            if not re.fullmatch(r"[a-z]{1,3}\d+", name) and name not in _WORDS:
                raise ValueError(name)
        case ast.Constant(value=int() | float()):
            pass
        case _:
            raise ValueError(type(node).__name__)


def _check_power(exponent: ast.expr) -> None:
    match exponent:
        case ast.Call(func=ast.Name(id="Integer"), args=[inner], keywords=[]):
            exponent = inner
    value = ast.literal_eval(exponent)
    if not isinstance(value, int | float) or abs(value) > _MAX_POWER:
        raise ValueError(value)


def _is_flag(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, bool | int)


def _refusal(why: str) -> ModelFileError:
    return ModelFileError(
        f"{why}; loading that may run code that lies in the file. If you trust whoever made it, "
        f"set {name_of('trust_pickle')}; else have it exported anew by "
        "torch.export.save of PyTorch 2.13"
    )


_CHECKS: dict[str, Callable[[str], None]] = {
    "path_name": _check_payload,
    "expr_str": _check_expression,
    "target": _check_operator,
    "as_operator": _check_operator,
    "in_spec": _check_structure,
    "out_spec": _check_structure,
}
