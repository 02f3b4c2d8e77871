"""Places the blocks of an acyclic graph in layers.

1. A block's layer is the length of the longest way to it; sources sit right above their readers.
2. An edge over several layers gets a bend in each of them; edges of one source share their bends.
3. Blocks and bends of a layer are put in the order of their neighbours' middles, layer by layer.
4. Each wants to stand under or over the middle of its neighbours; the order and the gaps being
   kept, the least squares of that are found exactly (pooling of adjacent violators).

Time grows with blocks and bends; the number of bends is bounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

GAP_X, GAP_Y = 28.0, 44.0
_BEND_WIDTH = 6.0
_SWEEPS = 8  # further ones changed next to nothing
MAX_BENDS = 60_000  # beyond it the longest edges are drawn straight; keeps a page within seconds

Point = tuple[float, float]
Edge = tuple[int, int]


@dataclass(frozen=True)
class Layout:
    """Upper left corners of the blocks, the points each edge passes, and the size of it all."""

    places: list[Point]
    routes: list[list[Point]]
    width: float
    height: float


def arrange(sizes: Sequence[tuple[float, float]], edges: Sequence[Edge]) -> Layout:
    """Lay out blocks of (width, height); an edge leads from an earlier block to a later one."""
    if not sizes:
        return Layout([], [], 0.0, 0.0)
    edges = [(a, b) for a, b in edges if a < b]
    mesh = _Mesh([w for w, _ in sizes], _layers(len(sizes), edges), edges)
    for _ in range(_SWEEPS):
        mesh.sort()
    middles = mesh.middles()
    left = min(x - w / 2 for x, w in zip(middles, mesh.widths, strict=True))
    middles = [x - left for x in middles]
    tops, height = _tops(mesh, [h for _, h in sizes])
    places = [(middles[i] - sizes[i][0] / 2, tops[mesh.layer_of[i]]) for i in range(len(sizes))]
    width = max(x + w / 2 for x, w in zip(middles, mesh.widths, strict=True))
    return Layout(places, _routes(mesh, edges, middles, tops, sizes), width, height)


def _layers(count: int, edges: Sequence[Edge]) -> list[int]:
    after: list[list[int]] = [[] for _ in range(count)]
    before = [0] * count
    for a, b in edges:
        after[a].append(b)
        before[b] += 1
    layer = [0] * count
    for block in range(count):  # edges lead forwards: every way to a block is known by now
        for other in after[block]:
            layer[other] = max(layer[other], layer[block] + 1)
    for block in range(count):
        if not before[block] and after[block]:
            layer[block] = min(layer[other] for other in after[block]) - 1
    return layer


class _Mesh:
    """Blocks and bends, in layers; every link leads to the next layer."""

    def __init__(self, widths: list[float], layer_of: list[int], edges: Sequence[Edge]) -> None:
        self.blocks = len(widths)
        self.widths, self.layer_of = list(widths), list(layer_of)
        self.bends: dict[int, list[int]] = {}  # of a source: one bend per layer below it
        self.up: list[list[int]] = [[] for _ in widths]
        self.down: list[list[int]] = [[] for _ in widths]
        self._link(edges)
        self.layers: list[list[int]] = [[] for _ in range(max(self.layer_of) + 1)]
        for vertex, layer in enumerate(self.layer_of):
            self.layers[layer].append(vertex)
        self.place = [0] * len(self.layer_of)
        self._number()

    def _link(self, edges: Sequence[Edge]) -> None:
        reach: dict[int, int] = {}
        for a, b in edges:
            reach[a] = max(reach.get(a, 0), self.layer_of[b] - self.layer_of[a] - 1)
        left = MAX_BENDS
        for source, count in sorted(reach.items(), key=lambda item: (item[1], item[0])):
            left -= count
            if left < 0:
                break
            self.bends[source] = [self._bend(source, k + 1) for k in range(count)]
            for upper, lower in zip(
                [source, *self.bends[source]], self.bends[source], strict=False
            ):
                self._join(upper, lower)
        for a, b in edges:
            if a in self.bends:
                self._join([a, *self.bends[a]][self.layer_of[b] - self.layer_of[a] - 1], b)

    def _bend(self, source: int, below: int) -> int:
        self.widths.append(_BEND_WIDTH)
        self.layer_of.append(self.layer_of[source] + below)
        self.up.append([])
        self.down.append([])
        return len(self.widths) - 1

    def _join(self, upper: int, lower: int) -> None:
        self.down[upper].append(lower)
        self.up[lower].append(upper)

    def _number(self) -> None:
        for layer in self.layers:
            for place, vertex in enumerate(layer):
                self.place[vertex] = place

    def sort(self) -> None:
        """Once down and once up: each layer in the order of its neighbours' middles."""
        for layers, near in ((self.layers, self.up), (self.layers[::-1], self.down)):
            for layer in layers:
                middle = {
                    v: sum(self.place[n] for n in near[v]) / len(near[v])
                    if near[v]
                    else float(self.place[v])
                    for v in layer
                }
                layer.sort(key=middle.__getitem__)
                for place, vertex in enumerate(layer):
                    self.place[vertex] = place

    def middles(self) -> list[float]:
        """The x of everything."""
        x = [0.0] * len(self.widths)
        for layer in self.layers:
            self._settle(layer, x, [0.0] * len(layer))
        for sweep in range(_SWEEPS + 1):  # the last one goes down: chains hang straight
            down = sweep % 2 == 0
            for layer in self.layers if down else self.layers[::-1]:
                wanted = []
                for vertex in layer:
                    up, low = self.up[vertex], self.down[vertex]
                    near = (up or low) if down else (low or up)
                    wanted.append(sum(x[n] for n in near) / len(near) if near else x[vertex])
                self._settle(layer, x, wanted)
        return x

    def _settle(self, layer: list[int], x: list[float], wanted: list[float]) -> None:
        """Set x of a layer as near to what is wanted as order and gaps allow."""
        offset, offsets = 0.0, []
        for number, vertex in enumerate(layer):
            if number:
                offset += (self.widths[layer[number - 1]] + self.widths[vertex]) / 2 + GAP_X
            offsets.append(offset)
        pools: list[tuple[float, int]] = []  # (mean, how many)
        for want, shift in zip(wanted, offsets, strict=True):
            mean, many = want - shift, 1
            while pools and pools[-1][0] > mean:
                other, more = pools.pop()
                mean, many = (other * more + mean * many) / (more + many), more + many
            pools.append((mean, many))
        means = [mean for mean, many in pools for _ in range(many)]
        for vertex, mean, shift in zip(layer, means, offsets, strict=True):
            x[vertex] = mean + shift


def _tops(mesh: _Mesh, heights: Sequence[float]) -> tuple[list[float], float]:
    """The y at which each layer begins, and where the last one ends."""
    tops, y = [], 0.0
    for layer in mesh.layers:
        tops.append(y)
        y += max((heights[v] for v in layer if v < mesh.blocks), default=0.0) + GAP_Y
    return tops, y - GAP_Y


def _routes(
    mesh: _Mesh,
    edges: Sequence[Edge],
    middles: Sequence[float],
    tops: Sequence[float],
    sizes: Sequence[tuple[float, float]],
) -> list[list[Point]]:
    """Each edge from the bottom of its source, past its bends, to the top of its target."""
    routes = []
    for a, b in edges:
        first, last = mesh.layer_of[a], mesh.layer_of[b]
        points = [(middles[a], tops[first] + sizes[a][1])]
        for bend in mesh.bends.get(a, [])[: last - first - 1]:
            top = tops[mesh.layer_of[bend]]
            points += [(middles[bend], top), (middles[bend], tops[mesh.layer_of[bend] + 1] - GAP_Y)]
        points.append((middles[b], tops[last]))
        routes.append(points)
    return routes
