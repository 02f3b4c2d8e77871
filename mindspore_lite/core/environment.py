"""Every environment variable that the package reads, one row each, and the one way to read them.

docs/settings.md is made from VARIABLES by scripts/settings.py. `variables` reads a variable only if
it has a row. C++ and Java programs read theirs themselves; tests compare those with the rows.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Variable:
    """One environment variable."""

    name: str
    meaning: str
    default: str  # what counts while it is not set; "": nothing is taken
    reader: str

    @property
    def is_ours(self) -> bool:
        """Whether it is a setting of this package, and no custom of the system."""
        return self.name.startswith("MSLITE_")


VARIABLES = (
    Variable("MSLITE_ASCEND", "`emulate` or `emulate:N`: the CPU stands in for N Ascend devices, "
             "else 8", "real devices", "placement"),
    Variable("MSLITE_ASCEND_QUIET", "set: say nothing about it on standard error", "", "placement"),
    Variable("MSLITE_CACHE", "`off` switches the compile cache off", "`on`", "engine"),
    Variable("MSLITE_CACHE_DIR", "the folder of the compile cache",
             "`mslite` in `XDG_CACHE_HOME`", "engine"),
    Variable("MSLITE_CACHE_MAX_BYTES", "how large the compile cache may grow: a number, or one "
             "with K, M or G", "`10G`", "engine"),
    Variable("MSLITE_PYTHON", "the Python that C++ and Java programs start their worker with; in "
             "Java, the property `mslite.python` counts first", "`mslite` on `PATH`",
             "C++ and Java"),
    Variable("MSLITE_SOCKET", "the socket of a running worker that C++ and Java programs attach "
             "to; in Java, the property `mslite.socket` counts first", "a worker of their own",
             "C++ and Java"),
    Variable("INFERENCE_SERVICE_NAME", "what KServe calls a model: the name of one that lies right "
             "in the folder that is served", "the name of the file", "`mslite serve`"),
    Variable("XDG_CACHE_HOME", "the folder of all caches", "`~/.cache`", "engine"),
    Variable("CC", "the C compiler for the launcher of fused kernels on a card",
             "cc, gcc or clang", "engine"),
    Variable("TORCHINDUCTOR_CACHE_DIR", "where PyTorch keeps what it compiled",
             "the compile cache", "engine"),
    Variable("TRITON_CACHE_DIR", "where Triton keeps what it compiled", "the compile cache",
             "engine"),
    Variable("ORT_DISABLE_TELEMETRY", "`0` lets ONNX Runtime report to its maker", "`1`", "engine"),
    Variable("LD_LIBRARY_PATH", "folders of shared libraries, which a jailed process may read", "",
             "the sandbox"),
    Variable("LANG", "the locale, kept for a jailed process", "", "the sandbox"),
    Variable("LC_ALL", "likewise", "", "the sandbox"),
    Variable("LC_CTYPE", "likewise", "", "the sandbox"),
    Variable("TZ", "the time zone, kept for a jailed process", "", "the sandbox"),
    Variable("PATH", "where `mslite sdk` looks for compilers, and C++ and Java programs for "
             "`mslite`", "", "`mslite sdk`, C++ and Java"),
    Variable("CXX", "the C++ compiler", "c++, g++ or clang++", "`mslite sdk cpp`"),
    Variable("CXXFLAGS", "more flags for compiling", "", "`mslite sdk cpp`"),
    Variable("LDFLAGS", "more flags for linking", "", "`mslite sdk cpp`"),
    Variable("JAVA_HOME", "the JDK", "javac on `PATH`", "`mslite sdk java`"),
    Variable("GPU_DEVICE_ID", "the card, without `--deviceId`", "`0`", "`benchmark`"),
    Variable("ASCEND_DEVICE_ID", "the device, without `--deviceId`", "`0`", "`benchmark`"),
    Variable("ASCEND_BACK_POLICY", "the provider, without `--provider`", "`litert`", "`benchmark`"),
    Variable("MINDSPORE_DUMP_CONFIG", "a file that says which values to store", "", "`benchmark`"),
    Variable("OTEL_EXPORTER_OTLP_ENDPOINT", "the collector that gets the spans of requests; "
             "OpenTelemetry itself reads more `OTEL_` variables", "no tracing", "`mslite serve`"),
    Variable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "likewise, with its path", "no tracing",
             "`mslite serve`"),
    Variable("OTEL_TRACES_EXPORTER", "`otlp` switches tracing on, `none` off",
             "on if there is a collector", "`mslite serve`"),
    Variable("OTEL_SDK_DISABLED", "`true` switches tracing off", "`false`", "`mslite serve`"),
    Variable("OTEL_SERVICE_NAME", "the name of the service in spans", "`mslite`",
             "`mslite serve`"),
    Variable("OTEL_RESOURCE_ATTRIBUTES", "what else spans say of it", "", "`mslite serve`"),
    Variable("MALLOC_ARENA_MAX", "how many arenas glibc may have", "one for 8 cores",
             "`mslite serve`"),
    Variable("GLIBC_TUNABLES", "likewise, as `glibc.malloc.arena_max`", "", "`mslite serve`"),
    Variable("OMPI_COMM_WORLD_RANK", "`GPUDeviceInfo::GetRankID` under Open MPI", "`0`", "C++"),
    Variable("PMI_RANK", "likewise, under other launchers", "`0`", "C++"),
    Variable("OMPI_COMM_WORLD_SIZE", "`GPUDeviceInfo::GetGroupSize` under Open MPI", "`1`", "C++"),
    Variable("PMI_SIZE", "likewise, under other launchers", "`1`", "C++"),
)  # fmt: skip
_NAMES = frozenset(variable.name for variable in VARIABLES)


class _Known(Mapping[str, str]):
    """The environment as it is now, as far as it has rows."""

    def __getitem__(self, name: str) -> str:
        if name not in _NAMES:
            raise LookupError(f"{name} has no row in VARIABLES; add one")  # a fault of the caller
        return os.environ[name]

    def __iter__(self) -> Iterator[str]:
        return (variable.name for variable in VARIABLES if variable.name in os.environ)

    def __len__(self) -> int:
        return sum(1 for _ in self)


variables: Mapping[str, str] = _Known()


def users_own(name: str) -> str:
    """A variable whose name the user typed, such as one that holds a key; "" where it is not."""
    return os.environ.get(name, "")


def preset(name: str, value: str) -> None:
    """Set a variable for libraries of this process, unless the user has."""
    if name not in variables:
        os.environ[name] = value


def for_child(**more: str) -> dict[str, str]:
    """The environment for a child process that we trust: ours, and some more."""
    return {**os.environ, **more}
