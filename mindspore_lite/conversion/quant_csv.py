"""Writes three CSV files about what a quantisation changed.

output_summary.csv has the outputs of the model, round_0.csv the numbers of quantised tensors before
and after, quant_param.csv the scales. Columns are those of MindSpore Lite. It tries several rounds
for mixed bits; here there is one.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from mindspore_lite.conversion.measure import Difference, cosine
from mindspore_lite.conversion.quant_report import Change
from mindspore_lite.errors import SettingsError

_TENSOR = ("NodeName", "NodeType", "TensorName")
_SUMMARY = ("Round", "TensorName", "CosineSimilarity")
_NUMBERS = ("Min", "Q1", "Median", "Q3", "MAX", "Mean", "Var", "Sparsity", "Clip")
_ROUND = (*_TENSOR, "InOutFlag", "DataTypeFlag", "TensorTypeFlag", *_NUMBERS, "CosineSimilarity")
_PARAMETERS = ("ElementsNum", "Dims", "Scale", "ZeroPoint", "Bits", "CorrectionVar")
_QUANT = (*_TENSOR, *_PARAMETERS, "CorrectionMean")


def write_csv(folder: Path, changes: Sequence[Change], difference: Difference) -> None:
    """Write the three files; the folder is made if need be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        summary = [(0, name, value) for name, value in difference.outputs]
        _write(folder / "output_summary.csv", _SUMMARY, summary)
        _write(folder / "round_0.csv", _ROUND, (row for c in changes for row in _rounds(c)))
        _write(folder / "quant_param.csv", _QUANT, (row for c in changes for row in _scales(c)))
    except OSError as exc:
        raise SettingsError(
            f"debug_info_save_path {str(folder)!r} cannot be written: {exc.strerror or exc}"
        ) from exc


def _write(path: Path, head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(head)
        writer.writerows(rows)


def _rounds(change: Change) -> Iterator[tuple[object, ...]]:
    before, after = change.before(), change.after()
    alike = cosine([before], [after])
    named = (change.node_name, change.node_type, change.tensor_name, change.side)
    half = max(change.scales) / 2
    low, high = after.min(initial=0) - half, after.max(initial=0) + half
    for flag, array in (("Origin", before), ("Dequant", after)):
        quartiles = np.quantile(array, (0, 0.25, 0.5, 0.75, 1)).tolist()
        shares = (array == 0, (array < low) | (array > high))  # sparse, clipped
        numbers = (array.mean(), array.var(), *(share.mean() for share in shares))
        yield (*named, flag, change.kind, *quartiles, *map(float, numbers), alike)


def _scales(change: Change) -> Iterator[tuple[object, ...]]:
    shape = change.before().shape
    named = (change.node_name, change.node_type, change.tensor_name)
    extent = (int(np.prod(shape)), " ".join(map(str, shape)))
    for scale, zero in zip(change.scales, change.zero_points, strict=True):
        # 1: the scale is corrected already; 0: nothing is added to restored numbers
        yield (*named, *extent, scale, zero, 8, 1, 0)
