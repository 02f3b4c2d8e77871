"""What a C++ program gets of the runtime, against a Python program with the same runner.

Run: python benchmarks/cpp.py [--rounds 9] [--seconds 3] [--sdk DIR] [--json FILE]
     [--quick]

Both sides are processes of their own, and take turns: a C++ program that was compiled against what
`mslite sdk cpp` makes, whose models run in its worker process, and a Python program with a
ModelParallelRunner inside. Throughput: a MobileNetV2-shaped network, 4 client threads. Calls: a
network that adds two vectors of 16, one client.

Targets: throughput at least 0.95 of the Python runner's; a call at most 120 us in the median.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import clients


def compiled(folder: Path, sdk: Path) -> list[str]:
    """The C++ program, as a user would compile it."""
    runtime, program = sdk / "runtime", folder / "cpp_client"
    libraries = [f"-L{runtime}/lib", f"-Wl,-rpath,{runtime}/lib", "-lmindspore-lite", "-pthread"]
    source = [str(clients.HERE / "cpp_client.cc"), f"-I{runtime}", "-std=c++14", "-O2"]
    subprocess.run([os.environ.get("CXX", "c++"), *source, "-o", program, *libraries], check=True)
    return [str(program)]


if __name__ == "__main__":
    clients.compare(__doc__, "C++", "cpp", compiled, most_us=120)
