"""ModelStatistics: the counters of models over gRPC."""

from __future__ import annotations

from typing import Any

from mindspore_lite.server.core import Core
from mindspore_lite.server.grpc.inference_pb2 import ModelStatistics, ModelStatisticsResponse
from mindspore_lite.server.grpc.messages import checked_version
from mindspore_lite.server.statistics import model_statistics


def statistics(core: Core, request: Any) -> ModelStatisticsResponse:
    """What was counted of a model, or of all."""
    found = model_statistics(core.models, request.name, checked_version(request.version))
    return ModelStatisticsResponse(model_stats=[ModelStatistics(**one) for one in found])
