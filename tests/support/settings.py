"""Specs in tests: settled from a Context, a dict of sections, and names of weights."""

from __future__ import annotations

from mindspore_lite.context import Context
from mindspore_lite.settings.read import layers_of
from mindspore_lite.settings.spec import Spec, settle


def spec_of(context: Context | None = None, sections: object = None, *variable: str) -> Spec:
    """A Spec; weights of the names in `variable` may change."""
    if variable:
        sections = {"ascend_context": {"variable_weights_list": ",".join(variable)}}
    return settle(context, layers_of(sections))
