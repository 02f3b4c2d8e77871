"""`mslite doctor --config`: every setting, its value, where it came from, and who reads it."""

from __future__ import annotations

import json
from pathlib import Path

from mindspore_lite.cli.console import say
from mindspore_lite.cli.inspect import printable
from mindspore_lite.context import Context
from mindspore_lite.core.environment import VARIABLES, variables
from mindspore_lite.settings.read import read_layers
from mindspore_lite.settings.spec import DEFAULT, settle
from mindspore_lite.settings.text import text_of


def show_config(file: Path, context: Context, *, as_json: bool) -> None:
    """Settle a configuration file and a context, and show what came of it."""
    spec = settle(context, read_layers("doctor", str(file), None))
    rows = [
        {
            "name": one.key.id,
            "value": text_of(one.value),
            "source": one.source,
            "reader": one.key.reader or "nothing",
        }
        for one in spec.settled.values()
    ]
    ours = [one.name for one in VARIABLES if one.is_ours and one.name in variables]
    environment = {name: variables[name] for name in ours}
    if as_json:
        found = {
            "settings": rows,
            "without_effect": list(spec.without_effect),
            "environment": environment,
        }
        say(json.dumps(found, indent=2))
        return
    widths = [max(len(row[column]) for row in rows) for column in ("name", "value")]
    say(f"settings of {printable(str(file))} on target {spec.target}:")
    for row in sorted(rows, key=lambda row: row["source"] == DEFAULT):  # what was said first
        name, value = row["name"].ljust(widths[0]), printable(row["value"]).ljust(widths[1])
        say(f"  {name}  {value}  from {row['source']}, read by {row['reader']}")
    for name, value in environment.items():
        say(f"  {name}={printable(value)}  from environment")
    if spec.without_effect:
        say("entries without effect:")
        for entry in spec.without_effect:
            say(f"  {printable(entry)}")
