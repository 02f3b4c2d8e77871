"""Builds at the limit of descriptors or memory: each ends well, or in a ResourceError."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx.helper import make_graph, make_model, make_node, make_opsetid
from onnx.helper import make_tensor_value_info as info

# builds once, so that all is imported, then with a little more of the limit each time
_PROGRAM = """
import json, os, resource, sys, warnings
import numpy as np
import mindspore_lite as mslite

warnings.simplefilter("ignore")  # that the cache is not used
path, kind, engine = sys.argv[1:]
context = mslite.Context()
context.cpu.thread_num = 1
config = {"common_context": {"engine": engine}}


def outcome():
    model = mslite.Model()
    try:
        model.build_from_file(path, mslite.ModelType.ONNX, context, config_dict=config)
        model.predict([np.zeros((1, 1024), np.float32)])
    except Exception as exc:
        return type(exc).__name__
    finally:
        model.close()
    return "done"


def limits():
    if kind == "descriptors":
        first_free = os.open(os.devnull, os.O_RDONLY)
        os.close(first_free)
        yield from ((resource.RLIMIT_NOFILE, first_free + more) for more in range(12))
    else:
        for mebibytes in range(0, 96, 4):
            pages = int(open("/proc/self/statm").read().split()[0])
            yield resource.RLIMIT_AS, pages * resource.getpagesize() + (mebibytes << 20)


found = [outcome()]
for what, limit in limits():
    before = resource.getrlimit(what)
    resource.setrlimit(what, (limit, before[1]))
    try:
        found.append(outcome())
    finally:
        resource.setrlimit(what, before)
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    weight = onnx.numpy_helper.from_array(np.ones((1024, 4096), np.float32), "w")
    graph = make_graph(
        [make_node("MatMul", ["x", "w"], ["y"])],
        "g",
        [info("x", onnx.TensorProto.FLOAT, [1, 1024])],
        [info("y", onnx.TensorProto.FLOAT, [1, 4096])],
        [weight],
    )
    path = tmp_path_factory.mktemp("limits") / "net.onnx"
    onnx.save(make_model(graph, ir_version=10, opset_imports=[make_opsetid("", 21)]), path)
    return path


@pytest.mark.parametrize("cache", ["on", "off"])
@pytest.mark.parametrize("kind", ["descriptors", "memory"])
@pytest.mark.parametrize("engine", ["onnxruntime", "torch"])
def test_a_build_at_the_limit_ends_well_or_in_a_resource_error(
    model: Path, engine: str, kind: str, cache: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip(engine)
    monkeypatch.setenv("MSLITE_CACHE", cache)
    command = [sys.executable, "-c", _PROGRAM, str(model), kind, engine]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert ended.returncode == 0, ended.stderr
    found = Counter(json.loads(ended.stdout))
    assert set(found) == {"done", "ResourceError"}
