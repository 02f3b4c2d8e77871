from __future__ import annotations

import json

from mindspore_lite.bench.result import (
    Histogram,
    Latency,
    Machine,
    ModelFacts,
    Moment,
    Point,
    Port,
    Ratio,
    Result,
    ResultPlace,
    Run,
    Settings,
    Tune,
    plain,
)

RESULT = Result(
    model=ModelFacts("<b>.mindir", (Port("x", "float32", (1, 3)),)),
    machine=Machine("Fast CPU", 2, "3.11", {"mslite": "1"}),
    settings=Settings("cpu", "onnxruntime", 0, 0, 0, 3.0, 0.5, 7),
    runs=(
        Run(
            *("mslite", 4, None, 10.0, Latency(1, 1, 1, 1, 1, 1), 1.0, 2.0, 3, 0, ""),
            Histogram((1.0, 2.0), (3,)),
            (Moment(0.5, 10.0, 1.0, 1.0),),
        ),
    ),
    ratios=(Ratio(4, None, "openvino", "throughput", 0.9, 1.0, 1.1),),
    layout=(ResultPlace(0, 2, (0, 1)),),
    tune=Tune(5.0, (Point("onnxruntime", 1, 1, 0, 4, 10.0, 1.0, True, True),), "p", "i"),
)


def test_a_result_is_plain_lists_and_dicts_that_json_gives_back() -> None:
    found = plain(RESULT)
    assert json.loads(json.dumps(found)) == found
    assert found["model"]["inputs"] == [{"name": "x", "dtype": "float32", "shape": [1, 3]}]
    assert found["runs"][0]["histogram"] == {"edges_ms": [1.0, 2.0], "counts": [3]}
    assert found["layout"] == [{"worker": 0, "threads": 2, "cores": [0, 1]}]
    assert found["tune"]["points"][0]["chosen"] is True
