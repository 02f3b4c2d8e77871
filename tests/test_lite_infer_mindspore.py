"""MindSpore itself calls LiteInfer; only where MindSpore is installed."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
CODE = """
import json

import numpy as np
import mindspore as ms
from mindspore import nn
import mindspore_lite as mslite

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.dense = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Dense(8, 5)
        self.drop = nn.Dropout(p=0.5)

    def construct(self, x):
        y = self.norm(self.conv(x)).mean((2, 3))
        return self.dense(self.drop(y)), y

calls = []
predict = mslite.LiteInfer.predict
mslite.LiteInfer.predict = lambda self, *given: calls.append(1) or predict(self, *given)
model = ms.train.Model(Net())
x = ms.Tensor(np.random.default_rng(0).normal(size=(2, 3, 8, 8)).astype(np.float32))
ours = [model.predict(x, backend="lite") for _ in range(2)][1]
theirs = model.predict(x)
far = [float(np.abs(a.asnumpy() - b.asnumpy()).max()) for a, b in zip(ours, theirs)]
print(json.dumps([len(calls), far]))
"""


@pytest.mark.skipif(find_spec("mindspore") is None, reason="MindSpore is not installed")
def test_predict_of_mindspore_reaches_us(tmp_path: Path) -> None:
    script = tmp_path / "script.py"  # MindSpore reads the source of the network
    script.write_text(f"import sys\nsys.path.insert(0, {str(ROOT)!r})\n{CODE}", encoding="utf-8")
    command = [sys.executable, str(script)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    calls, far = json.loads(done.stdout.splitlines()[-1])
    assert calls == 2
    assert len(far) == 2 and max(far) < 1e-5
