"""What two parts of the OpenVINO engine bring: the runner as it is, and without each, in one run.

Run: python benchmarks/openvino_parts.py [--models MobileNetV2 ...] [--clients 5] [--builds 2]
     [--rounds 9] [--seconds 1.5] [--json FILE] [--quick]

Left out are the request that waits inside of OpenVINO (serving/prefetch.py), and huge pages for
packed weights (engines/openvino/huge_pages.py). Two builds of one model differ by a percent, so
there are several of each kind, whose throughputs are added up; all take turns in every round.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from unittest import mock

import engines
import load
import parallel
import record

import mindspore_lite as mslite
from mindspore_lite.engines.openvino import huge_pages
from mindspore_lite.serving import placement

WHOLE = "as it is"
PARTS = {
    "a request ahead": mock.patch.object(placement, "places_ahead", lambda streams: 0),
    "huge pages": mock.patch.object(huge_pages, "for_new_memory", nullcontext),
}


@contextmanager
def runners(mindir: Path, builds: int) -> Iterator[dict[str, mslite.ModelParallelRunner]]:
    """So many of each kind, built in turn; their names are those of `names`."""
    engines.built(mindir, "openvino").close()  # compiled, and found by all the others
    with ExitStack() as stack:
        found = {}
        for turn in zip(*(names(kind, builds) for kind in (WHOLE, *PARTS)), strict=True):
            for kind, name in zip((WHOLE, *PARTS), turn, strict=True):
                with PARTS.get(kind, nullcontext()):
                    found[name] = stack.enter_context(engines.built(mindir, "openvino"))
        yield found


def names(kind: str, builds: int) -> list[str]:
    """Of all builds of a kind."""
    return [f"{kind} {number}" for number in range(builds)]


def measure(name: str, mindir: Path, clients: int, args: argparse.Namespace) -> list[str]:
    """Print one model and number of clients; returns the row of it."""
    with runners(mindir, args.builds) as made:
        arrays = list(parallel.inputs_for(next(iter(made.values()))).values())
        burst = partial(load.closed_loop, clients=clients, seconds=args.seconds)
        bursts = load.interleaved(
            {key: partial(burst, partial(one.predict, arrays)) for key, one in made.items()},
            args.rounds,
        )
    sums: dict[str, list[float]] = {}
    for kind in (WHOLE, *PARTS):
        each = [parallel.rates(bursts[one]) for one in names(kind, args.builds)]
        sums[kind] = [sum(rates) for rates in zip(*each, strict=True)]
    cells = [name, str(clients)]
    for part in PARTS:
        gain = load.ratio(sums[WHOLE], sums[part])
        print(f"{name}, {clients} clients: with / without {part} {gain}")
        cells.append(f"{gain.middle:.3f} ({gain.quartiles(3)})")
    return cells


def main() -> None:
    """Measure and print."""
    parser = load.parser(__doc__)
    names = list(parallel.MODELS)
    parser.add_argument("--models", nargs="+", choices=names, default=names)
    parser.add_argument("--clients", nargs="+", type=int, default=[5])
    parser.add_argument("--builds", type=int, default=2, help="of each kind")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=1.5, help="of one burst of one side")
    parser.add_argument("--quick", action="store_true", help="a tiny model and tiny bursts")
    args = parser.parse_args()
    models = {name: parallel.MODELS[name] for name in args.models}
    if args.quick:
        models, args.clients, args.seconds = parallel.QUICK, [3], 0.02
        args.builds = args.rounds = 1
    table = record.Table("model", "clients", *(f"with / without {part}" for part in PARTS))
    for name, write in models.items():
        with load.scratch() as folder:
            mindir = write(folder / "model.mindir")
            for clients in args.clients:
                table.add(*measure(name, mindir, clients, args))
    record.write(args.json, {"parts": table}, packages=["openvino"])


if __name__ == "__main__":
    main()
