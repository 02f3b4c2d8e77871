"""What users do with a card, on a real one: runners, Tensors, several copies, the command line."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.fake_cards import gpu
from support.models import DIGITS, MINDIR, written
from support.shared import ROOT
from support.updates import telling_net, told, update, variable, versions

import mindspore_lite as mslite
from mindspore_lite.engines.select import usable_targets

pytestmark = pytest.mark.gpu

FAST: dict[str, dict[str, str]] = {"gpu_context": {"tuning": "fast", "allow_tf32": "false"}}
ROWS = np.random.default_rng(1).random((64, 1, 8, 8), np.float32)


@pytest.fixture(scope="module")
def wanted() -> np.ndarray:
    with mslite.Model() as model:
        model.build_from_file(str(DIGITS), MINDIR)
        return model.predict([ROWS])[0].get_data_to_numpy()


def runner(**parallel: Any) -> mslite.ModelParallelRunner:
    made = mslite.ModelParallelRunner()
    made.build_from_file(str(DIGITS), gpu(**{"config_info": FAST, **parallel}))
    return made


def close(found: np.ndarray, wanted: np.ndarray) -> bool:
    return np.allclose(found, wanted, atol=1e-4)


def test_the_target_is_usable() -> None:
    assert "gpu" in usable_targets()


@pytest.mark.parametrize("ids", [[], [0, 0]])
def test_many_clients_get_their_own_rows(wanted: np.ndarray, ids: list[int]) -> None:
    start = threading.Barrier(16)
    with runner(device_ids=ids) as made:

        def client(number: int) -> bool:
            start.wait(120)
            found = [made.predict([ROWS[row][None]])[0] for row in range(number, 64, 16)]
            return close(
                np.concatenate([tensor.get_data_to_numpy() for tensor in found]),
                wanted[number::16],
            )

        with ThreadPoolExecutor(16) as threads:
            assert all(threads.map(client, range(16)))
        statistics = made.statistics()
        assert statistics.done == 64
        assert {worker.device for worker in statistics.workers} == {"gpu:0"}
        assert max(statistics.batches) > 1  # they were joined
        assert close(made.predict([ROWS])[0].get_data_to_numpy(), wanted)


def test_requests_of_other_sizes_share_the_card(tmp_path: Path) -> None:
    path = written(tmp_path / "telling.mindir", telling_net())
    made = mslite.ModelParallelRunner()
    config = {**FAST, **variable("a", "b")}
    made.build_from_file(str(path), gpu(device_ids=[0, 0], config_info=config))
    with made:
        for version in (1, 2):
            update(made, versions(version))
            assert {told(made, rows=rows) for rows in (2, 3, 5)} == {version}


def test_tensors_stay_on_the_card(wanted: np.ndarray) -> None:
    import torch

    with runner() as made:
        given = torch.from_numpy(ROWS).cuda()
        (output,) = made.predict([mslite.Tensor.from_dlpack(given)])
        assert output.device == "gpu:0"
        back = torch.from_dlpack(output)
        assert back.is_cuda
        assert close(back.cpu().numpy(), wanted)
        there = mslite.Tensor(shape=[64, 10], dtype=mslite.DataType.FLOAT32, device="gpu:0")
        host = mslite.Tensor(shape=[64, 10], dtype=mslite.DataType.FLOAT32)
        for outputs in ([there], [host]):
            for inputs in ([mslite.Tensor(ROWS, device="gpu:0")], [ROWS]):
                made.predict(inputs, outputs)
                assert close(outputs[0].get_data_to_numpy(), wanted)
        assert (there.device, host.device) == ("gpu:0", "None:-1")


def test_one_batch_is_split_over_processes(wanted: np.ndarray) -> None:
    with mslite.MultiDeviceRunner() as made:
        made.build_from_file(str(DIGITS), gpu(device_ids=[0, 0], config_info=FAST))
        (output,) = made.predict([ROWS])
        assert close(output.get_data_to_numpy(), wanted)
        assert [device.done for device in made.statistics().devices] == [1, 1]


def command(*arguments: object) -> str:
    run = [sys.executable, "-m", "mindspore_lite", *map(str, arguments)]
    done = subprocess.run(run, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_command_line_knows_the_card(tmp_path: Path) -> None:
    assert "    gpu:0: " in command("doctor")
    np.save(tmp_path / "x.npy", ROWS[:1])
    given = f"x={tmp_path / 'x.npy'}"
    config = tmp_path / "fast.ini"
    config.write_text("[gpu_context]\ntuning=fast\n")
    found = command("run", DIGITS, "--input", given, "--target", "gpu", "--config", config)
    assert "tensor's name is:Default/Softmax-op0" in found
