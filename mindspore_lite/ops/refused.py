"""Reasons why some primitives are in no table: no other runtime can compute them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def why_not(primitive: str, attributes: Mapping[str, Any]) -> str:
    """What to say next to the name of a primitive that is not in the table; often nothing."""
    if primitive != "Custom":
        return ""
    kind = attributes.get("type") or attributes.get("reg_op_name") or "unknown"
    if kind == "ACL":
        return (
            "the model was compiled for Ascend when it was converted; convert it again without "
            "optimize=ascend_oriented"
        )
    return f"an operator of its own, of type {kind!r}, which only its author's runtime has"
