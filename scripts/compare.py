"""Runs the models of folders through mslite and compares with the outputs that lie beside them.

    python scripts/compare.py FOLDER ...

Beside NAME.mindir, NAME.npz holds inputs i0, i1, ... and the outputs that MindSpore computed,
o0, o1, ...; scripts/fixtures makes such folders. Prints the largest error of each model, relative
to its largest output, and fails above 1e-4.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import mindspore_lite as mslite

LIMIT = 1e-4


def main(folders: list[str]) -> int:
    """Compare every model; returns how many disagree."""
    files = sorted(file for folder in folders for file in Path(folder).glob("*.mindir"))
    if not files:
        print(__doc__)
        return 2
    errors = {file: error_of(file) for file in files}
    for file, error in errors.items():
        print(f"{error:.1e} {file.stem}{'' if error <= LIMIT else '  DISAGREES'}")
    wrong = sum(not error <= LIMIT for error in errors.values())
    print(f"{len(files)} models, {wrong} above {LIMIT:.0e}")
    return int(wrong > 0)


def error_of(file: Path) -> float:
    """The largest error of a model, NaN where a number is missing."""
    with np.load(file.with_suffix(".npz")) as held:
        inputs = [held[name] for name in held.files if name.startswith("i")]
        wanted = [held[name] for name in held.files if name.startswith("o")]
    with mslite.Model() as model:
        model.build_from_file(str(file), mslite.ModelType.MINDIR)
        found = [output.get_data_to_numpy() for output in model.predict(inputs)]
    pairs = zip(found, wanted, strict=True)
    return max(float(np.abs(f - w).max() / np.abs(w).max()) for f, w in pairs)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
