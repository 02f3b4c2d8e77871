"""The command `mslite`: finds the sub-command, and turns errors into one line and an exit code."""

from __future__ import annotations

import sys

import cyclopts

from mindspore_lite.cli.console import all_written, fail, read_by_somebody
from mindspore_lite.core.boundary import resource_error
from mindspore_lite.errors import LiteError
from mindspore_lite.version import __version__

app = cyclopts.App(
    name="mslite",
    help="Run MindSpore Lite models. Start with `mslite demo`, then `mslite run MODEL.mindir`.",
    version=__version__,
    help_format="plaintext",
    suppress_keyboard_interrupt=False,  # main() says it
)
COMMANDS = {  # name: (what it does, an example); a module is loaded when its command is called
    "demo": (
        "Let five clients use an embedded model at once, and compare that with one by one.\n\n"
        "Both times five clients ask at the same time; one by one, each waits for its turn.",
        "mslite demo",
    ),
    "run": (
        "Run a model once and show its outputs.",
        "mslite run resnet50.mindir --input x=cat.npy --top 5\n\n"
        "On a card: mslite run resnet50.mindir --target gpu",
    ),
    "convert": (
        "Convert a model of another framework to MindIR.",
        "mslite convert resnet50.onnx --shape x=1,3,224,224 --check",
    ),
    "inspect": (
        "Show what a model file holds and needs, without running it.\n\n"
        "Exit code: 0 when the model can run, 1 when something in it is not supported, "
        "2 when the file cannot be read.",
        "mslite inspect resnet50.mindir --html resnet50.html",
    ),
    "bench": (
        "Measure a model, or a server, under load: throughput, latency, CPU time, memory.\n\n"
        "Exit code: 0 when requests were answered, 1 when none was or no setting keeps to "
        "--p99-ms, 2 on wrong usage, 130 after Ctrl-C, with what was measured up to then.",
        "mslite bench resnet50.mindir --clients 1,4,16 --compare onnxruntime\n\n"
        "The best settings: mslite bench resnet50.mindir --tune --p99-ms 50 --html tune.html\n\n"
        "A server: mslite bench --url http://localhost:8000 --model resnet50 --clients 1,16",
    ),
    "doctor": (
        "Show versions, cores and cache, how concurrent requests share the cores, and whether a "
        "model runs.",
        "mslite doctor resnet50.mindir --workers 4\n\n"
        "What a configuration file says: mslite doctor --config runner.ini --json",
    ),
    "serve": (
        "Serve models over HTTP, to every client of the Open Inference Protocol.\n\n"
        "It prints one line when it is ready, and ends by SIGTERM after the requests under way.",
        "mslite serve resnet50.mindir --http-port 8000\n\nThe embedded model: mslite serve --demo",
    ),
    "status": (
        "Show what a server is doing: a live table on a terminal, plain lines in a pipe.\n\n"
        "Exit code: 0 when the server is ready, 1 when it is not, or cannot be reached.",
        "mslite status http://localhost:8000\n\n"
        "For a script: mslite status http://localhost:8000 --json",
    ),
    "worker": (
        "Host models in a process of their own, for programs in any language that speak its "
        "protocol.\n\nIt ends with its last client, or by SIGTERM after the requests under way.",
        "mslite worker --socket /tmp/mslite.sock --cores 0-3",
    ),
    "sdk": (
        "Make what programs in other languages are built with: headers, libraries, jars.",
        "mslite sdk cpp ~/mslite-sdk",
    ),
}
for name, (what, example) in COMMANDS.items():
    text = f"{what}\n\nExample: {example}"
    app.command(f"mindspore_lite.cli.{name}:{name}", name=name, help=text)


def main() -> None:
    """Entry point of the console script: 0 when done, 1 when something failed, 2 on wrong usage."""
    try:
        with all_written(), read_by_somebody():
            app(sys.argv[1:], exit_on_error=False, print_error=False)
    except cyclopts.CycloptsError as exc:
        fail(f"{exc} (see mslite --help)", code=2)
    except (LiteError, OSError, ValueError, MemoryError, RuntimeError) as exc:
        limit = None if isinstance(exc, LiteError) else resource_error(exc)
        if limit is None and isinstance(exc, RuntimeError) and not isinstance(exc, LiteError):
            raise  # a bug: its traceback is what to report
        fail(str(limit or exc), code=1)
    except KeyboardInterrupt:
        fail("interrupted", code=130)
