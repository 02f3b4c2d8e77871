"""Boxes in images: non-maximum suppression and region pooling."""

from __future__ import annotations

import torch

from mindspore_lite.engines.torch.kernels.index import at_places
from mindspore_lite.engines.torch.kernels.numbers import Numbers, single
from mindspore_lite.engines.torch.kernels.table import kernel


@kernel(
    "NonMaxSuppression",
    numbers=("max_output_boxes_per_class", "iou_threshold", "score_threshold"),
)
def non_max_suppression(
    boxes: torch.Tensor,
    scores: torch.Tensor,
    max_output_boxes_per_class: Numbers = None,
    iou_threshold: Numbers = None,
    score_threshold: Numbers = None,
    *,
    center_point_box: int = 0,
) -> torch.Tensor:
    """(batch, class, box) of the best boxes, none of which overlaps a better one of its class."""
    most, overlap = single(max_output_boxes_per_class, 0), single(iou_threshold, 0)
    least = single(score_threshold)
    corners, scores_here = _corners(boxes.cpu(), center_point_box), scores.cpu()  # box after box
    found = [torch.zeros((0, 3), dtype=torch.int64)]
    for batch in range(scores.shape[0]):
        for kind in range(scores.shape[1]):
            kept = _best(corners[batch], scores_here[batch, kind], most, overlap, least)
            found.append(torch.tensor([[batch, kind, box] for box in kept]).reshape(-1, 3))
    return torch.cat(found).to(torch.int64).to(boxes.device)


def _corners(boxes: torch.Tensor, center_point_box: int) -> torch.Tensor:
    """Boxes as their smaller and larger corners."""
    first, second = boxes[..., :2], boxes[..., 2:]
    if center_point_box:
        return torch.cat([first - second / 2, first + second / 2], -1)
    return torch.cat([torch.minimum(first, second), torch.maximum(first, second)], -1)


def _best(
    corners: torch.Tensor, scores: torch.Tensor, most: int, overlap: float, least: float | None
) -> list[int]:
    """The boxes to keep, the best first."""
    order = torch.argsort(scores, descending=True, stable=True)
    if least is not None:
        order = order[scores[order] > least]
    kept: list[int] = []
    while order.numel() and len(kept) < most:
        best = order[0]
        kept.append(int(best))
        order = order[1:]
        order = order[_shared(corners[best], corners[order]) <= overlap]
    return kept


def _shared(one: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
    """The part of two boxes' common area that they share."""
    sides = torch.minimum(one[2:], others[:, 2:]) - torch.maximum(one[:2], others[:, :2])
    both = sides.clamp(min=0).prod(-1)
    area = (one[2:] - one[:2]).prod()
    total = area + (others[:, 2:] - others[:, :2]).prod(-1) - both
    return torch.where(total > 0, both / total, 0)


@kernel("RoiAlign", half="wide")
def roi_align(
    x: torch.Tensor,
    rois: torch.Tensor,
    batch_indices: torch.Tensor,
    *,
    coordinate_transformation_mode: str = "half_pixel",
    mode: str = "avg",
    output_height: int = 1,
    output_width: int = 1,
    sampling_ratio: int = 0,
    spatial_scale: float = 1.0,
) -> torch.Tensor:
    """Regions of images in one size: means, or maxima, of points between their pixels."""
    half_pixel = coordinate_transformation_mode == "half_pixel"
    corners = rois * spatial_scale - (0.5 if half_pixel else 0.0)
    sides = corners[:, 2:] - corners[:, :2]
    if not half_pixel:
        sides = sides.clamp(min=1)
    axes = [
        _samples(corners[:, at], sides[:, at], bins, sampling_ratio, x.shape[3 - at])
        for at, bins in ((1, output_height), (0, output_width))
    ]
    (rows, row_weights, row_counts), (columns, column_weights, column_counts) = axes
    batch = batch_indices.reshape(-1, *[1] * 6)
    # (roi, bin, sample, corner) of each axis -> values (roi, y, x, sample y, x, corner y, x, C)
    y, wy = (a[:, :, None, :, None, :, None] for a in (rows, row_weights))
    z, wz = (a[:, None, :, None, :, None, :] for a in (columns, column_weights))
    values = at_places(x.movedim(1, -1), [batch, y, z])
    weighted = values * (wy * wz).unsqueeze(-1)
    counted = row_counts[:, None, None, :, None] & column_counts[:, None, None, None, :]
    counted = counted[..., None, None, None]
    if mode == "max":  # of the corners as well, as ONNX Runtime has it
        found = torch.where(counted, weighted, -torch.inf).amax((3, 4, 5, 6))
        return torch.where(found == -torch.inf, 0, found).movedim(-1, 1)
    count = counted.sum((3, 4, 5, 6)).clamp(min=1)
    return (torch.where(counted, weighted, 0).sum((3, 4, 5, 6)) / count).movedim(-1, 1)


def _samples(
    start: torch.Tensor, side: torch.Tensor, bins: int, ratio: int, length: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Along one axis: two pixels and their weights for each sample of each bin; which count.

    Without a ratio there are as many samples as pixels in a bin, so that it depends on the data.
    """
    each = side / bins
    counts = torch.full_like(each, ratio) if ratio > 0 else torch.ceil(each).clamp(min=0)
    most = ratio if ratio > 0 else max(int(counts.max()), 1) if counts.numel() else 1
    sample = torch.arange(most, device=start.device, dtype=start.dtype)
    bin_at = torch.arange(bins, device=start.device, dtype=start.dtype).unsqueeze(1)
    each, per_bin = each.reshape(-1, 1, 1), counts.clamp(min=1).reshape(-1, 1, 1)
    place = start.reshape(-1, 1, 1) + each * (bin_at + (sample + 0.5) / per_bin)
    inside = (place >= -1) & (place <= length)
    place = place.clamp(0, length - 1)
    low = place.floor().clamp(max=max(length - 2, 0))
    high = (low + 1).clamp(max=length - 1)
    part = place - low
    weights = torch.stack([1 - part, part], -1) * inside.unsqueeze(-1)
    return torch.stack([low, high], -1).long(), weights, sample < counts.unsqueeze(1)
