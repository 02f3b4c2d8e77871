"""What a Java program gets of the runtime, against a Python program with the same runner.

Run: python benchmarks/java.py [--rounds 9] [--seconds 3] [--sdk DIR] [--json FILE]
     [--quick]

Both sides are processes of their own, and take turns: a Java program that was compiled against what
`mslite sdk java` makes, whose models run in its worker process, and a Python program with a
ModelParallelRunner inside. Throughput: a MobileNetV2-shaped network, 4 client threads. Calls: a
network that adds two vectors of 16, one client. The first round, which is not counted, is also what
the JVM takes to compile the program.

Targets: throughput at least 0.95 of the Python runner's; a call at most 150 us in the median.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import clients

from mindspore_lite.sdk.java import JAR
from mindspore_lite.sdk.javac import find_javac


def compiled(folder: Path, sdk: Path) -> list[str]:
    """The Java program, as a user would compile it."""
    javac, jar = Path(find_javac()), str(sdk / JAR)
    source = str(clients.HERE / "JavaClient.java")
    subprocess.run([javac, "-cp", jar, "-d", folder, source], check=True)
    path = os.pathsep.join([jar, str(folder)])
    return [str(javac.with_name("java")), "-cp", path, "JavaClient"]


if __name__ == "__main__":
    clients.compare(__doc__, "Java", "java", compiled, most_us=150)
