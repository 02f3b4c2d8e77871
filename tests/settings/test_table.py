"""settings/table.py: it is complete, and the page that is made of it is current."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from mindspore_lite.context import Context
from mindspore_lite.engines import select
from mindspore_lite.settings.kinds import cleaned
from mindspore_lite.settings.spec import Spec, settle
from mindspore_lite.settings.table import ENGINES, KEYS, Key
from mindspore_lite.settings.text import _settings, text_of

ROOT = Path(__file__).parent.parent.parent


def test_every_attribute_of_a_context_is_a_row_with_its_default() -> None:
    rows = {key.context: key for key in KEYS if key.context}
    found = {name: setting.default for name, _, setting in _settings(Context())}
    del found["parallel.config_path"]  # which names a configuration, and is no setting itself
    assert rows.keys() == found.keys()
    found["ascend.precision_mode"] = "enforce_fp16"  # of the compiler; the Context says nothing
    assert {name: key.default for name, key in rows.items()} == found


def test_engines_are_those_that_can_be_selected() -> None:
    assert {name for name, *_ in select.available()} == set(ENGINES)


@pytest.mark.parametrize("key", [key for key in KEYS if key.sections], ids=lambda key: key.id)
def test_the_text_of_a_default_is_read_back(key: Key) -> None:
    text = cleaned(text_of(key.default))
    if text and text != "0":  # 0 is what no user can write, or automatic
        assert key.kind.read(text) == key.default


def test_names_are_unique_on_each_target() -> None:
    for target in ("cpu", "gpu", "ascend"):
        names = [key.name for key in KEYS if key.target in ("", target)]
        assert len(names) == len(set(names))


def test_every_setting_that_has_a_reader_is_in_the_spec() -> None:
    spec: Spec = settle()
    elsewhere = ("target", "precision_mode", "device_id", "sandbox")
    for one in spec.settled.values():
        name = one.key.name
        if one.key.reader and name not in elsewhere and "_weight" not in name:
            assert hasattr(spec, name) or hasattr(spec.budget, name), name


def test_the_page_is_current() -> None:
    script = [sys.executable, str(ROOT / "scripts/settings.py"), "--check"]
    done = subprocess.run(script, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
