"""What ONNX Runtime may compute ahead of time: the settings that passes/folding.py asks for."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from mindspore_lite.core.budget import Budget

if TYPE_CHECKING:
    import onnx_ir as ir

    from mindspore_lite.engines.prepare.skeleton import Parts

_LOG = logging.getLogger(__name__)
_UNFOLDED = "mindspore_lite.unfolded"  # metadata of models whose constants stay as they are


def settle(model: ir.Model, budget: Budget) -> int:
    """Measure the constants of a model; returns the most bytes that one of them may be made of.

    A model for which computing them is too much is marked, so that none of them is. The mark stays
    with the model when it is stored.

    Raises:
        ModelFileError: The constants would make more bytes than the budget allows.
    """
    # it loads onnx, as translating does
    from mindspore_lite.passes.folding import check_folding

    folding = check_folding(model, budget)
    if folding.costly:
        model.metadata_props[_UNFOLDED] = "1"
        _LOG.warning(
            "constants of the model are computed in every run, not ahead of time: %s",
            folding.costly,
        )
    return folding.most_each


def entries(parts: Parts) -> dict[str, str]:
    """Session settings for compiling a model."""
    found = unfolded(parts.skeleton)
    if parts.most_folded:
        found["optimization.constant_folding_max_output_size_in_bytes"] = str(parts.most_folded)
    return found


def unfolded(skeleton: bytes) -> dict[str, str]:
    """Session settings that keep ONNX Runtime from computing constants of a marked model."""
    if _UNFOLDED.encode() not in skeleton:
        return {}
    return {"optimization.disable_specified_optimizers": "ConstantFolding"}
