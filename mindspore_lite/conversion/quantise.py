"""Quantises a model in the way that its settings ask for."""

from __future__ import annotations

from collections.abc import Callable

import onnx_ir as ir
import onnx_ir.passes.common as passes

from mindspore_lite.conversion.calibration import Samples, open_samples
from mindspore_lite.conversion.dynamic_quant import quantise_dynamically
from mindspore_lite.conversion.full_quant import quantise_fully
from mindspore_lite.conversion.layer_loss import layer_losses
from mindspore_lite.conversion.measure import Difference, compared, inputs_of, made_up_inputs
from mindspore_lite.conversion.quant_csv import write_csv
from mindspore_lite.conversion.quant_report import LayerLoss, Outcome
from mindspore_lite.conversion.quant_report import QuantReport as QuantReport
from mindspore_lite.conversion.quant_settings import QuantSettings as QuantSettings
from mindspore_lite.conversion.quant_settings import settings_of as settings_of
from mindspore_lite.conversion.weight_quant import quantise_weights
from mindspore_lite.errors import LiteError, SettingsError

Step = Callable[[str], None]


def quantise(
    model: ir.Model, settings: QuantSettings, step: Step = lambda _: None
) -> tuple[ir.Model, QuantReport]:
    """A quantised copy of a model, and what that did to its size and its results.

    Batch normalisations should have been folded before: they hide what a convolution computes.

    Raises:
        SettingsError: Names of nodes or of inputs do not fit the model, or there is nothing to do.
        InputError: A file of calibration data cannot be used.
    """
    _check_names(model, settings)
    samples = _samples(model, settings)
    step("quantising")
    outcome = _outcome(_copy(model), settings, samples, step)
    if not outcome.changes:
        raise SettingsError(_nothing(outcome, settings))
    step("comparing")
    held = None if samples is None else samples.held_out()
    if held is None:
        difference = compared(model, outcome.model, samples)
    else:
        what = "1 sample that was" if len(held) == 1 else f"{len(held)} samples that were"
        difference = compared(model, outcome.model, held, f"{what} held out")
    step("looking for the layers that lose most")
    layers = _layers(model, settings, outcome, held or samples)
    if settings.debug_folder is not None:
        write_csv(settings.debug_folder, outcome.changes, difference)
    return outcome.model, _report(settings, model, outcome, difference, layers)


def _check_names(model: ir.Model, settings: QuantSettings) -> None:
    known = {node.name for node in model.graph.all_nodes()}
    problems = [
        f"skip_quant_node names {name!r}, which is no node of the model, or none any more: "
        "optimize=none keeps all of them"
        for name in sorted(settings.skip)
        if name not in known
    ]
    if problems:
        raise SettingsError("\n".join(problems), problems)


def _samples(model: ir.Model, settings: QuantSettings) -> Samples | None:
    if settings.data is None:
        return None
    return open_samples(settings.data, inputs_of(model))


def _copy(model: ir.Model) -> ir.Model:
    copy = model.clone()
    passes.LiftConstantsToInitializersPass(lift_all_constants=False)(copy)
    return copy


def _outcome(
    model: ir.Model, settings: QuantSettings, samples: Samples | None, step: Step
) -> Outcome:
    if settings.kind == "WEIGHT_QUANT":
        return quantise_weights(model, settings)
    if settings.kind == "DYNAMIC_QUANT":
        return quantise_dynamically(model, settings)
    if samples is None:
        raise SettingsError("full quantisation needs calibration data: [data_preprocess_param]")
    return quantise_fully(model, settings, samples, step)


def _nothing(outcome: Outcome, settings: QuantSettings) -> str:
    reasons = ", ".join(f"{count} {reason}" for reason, count in outcome.left.items())
    return (
        f"{settings.kind} found no weight to quantise: "
        f"{reasons or 'the model has no constant weights in float32'}"
    )


def _report(
    settings: QuantSettings,
    model: ir.Model,
    outcome: Outcome,
    difference: Difference,
    layers: tuple[LayerLoss, ...],
) -> QuantReport:
    return QuantReport(
        settings.kind,
        sum(change.kind == "Weight" for change in outcome.changes),
        outcome.left,
        _weight_bytes(model),
        _weight_bytes(outcome.model),
        difference.largest,
        difference.cosine,
        difference.compared_on,
        difference.top_one,
        layers,
    )


def _layers(
    model: ir.Model, settings: QuantSettings, outcome: Outcome, samples: Samples | None
) -> tuple[LayerLoss, ...]:
    """What each layer loses; none where the model does not run on the inputs that there are."""
    probe = _copy(model)
    inputs = samples if samples is not None else [made_up_inputs(inputs_of(probe), 0)]
    try:
        return layer_losses(probe, outcome.changes, outcome.roundings, inputs)
    except LiteError:
        if samples is not None:
            raise
        return ()


def _weight_bytes(model: ir.Model) -> int:
    return sum(
        value.const_value.nbytes
        for graph in model.graphs()
        for value in graph.initializers.values()
        if value.const_value is not None
    )
