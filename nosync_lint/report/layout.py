"""Places boxes in columns and leads arrows between them, so that no box lies on another and no arrow runs through one.

A layered drawing: arrows that close a circle are turned round, every box stands right of what points at it, arrows over
several columns get a slot in each, slots are ordered so that few arrows cross, and moved close to their neighbours.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

BETWEEN_COLUMNS = 64.0
BETWEEN_BOXES = 14.0
BETWEEN_ARROWS = 8.0
"""The least room around an arrow that passes a column."""
SWEEPS = 8
"""How often slots are ordered and moved, from left to right and back: more changes little."""
STRAIGHT = 8.0
"""How much more an arrow that passes a column is kept straight than a box is kept at its neighbours."""

Point = tuple[float, float]


class Place(NamedTuple):
    """Where a box stands: its left upper corner and its size."""

    x: float
    y: float
    width: float
    height: float

    @property
    def middle(self) -> float:
        return self.y + self.height / 2


class Route(NamedTuple):
    """The points an arrow goes through, from left to right.

    It runs straight to the second point, in a curve to the third, and so on in turn. An arrow that closes a circle runs
    `backwards`: its head is at the first point. One from a box to itself has two points, both on the upper side.
    """

    points: tuple[Point, ...]
    backwards: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """A drawing: places of boxes and routes of arrows, each in the order in which they were given."""

    places: tuple[Place, ...]
    routes: tuple[Route, ...]
    width: float
    height: float


def plan(sizes: Sequence[tuple[float, float]], arrows: Sequence[tuple[int, int]]) -> Plan:
    """Where to draw boxes of the given sizes and the arrows between them, which are pairs of numbers of boxes."""
    backwards = _closing(len(sizes), arrows)
    forward = [(b, a) if number in backwards else (a, b) for number, (a, b) in enumerate(arrows)]
    columns = _columns(len(sizes), forward)
    grid = _Grid(sizes, columns, forward)
    grid.order()
    grid.settle()
    places = grid.places()
    routes = tuple(
        Route(_loop(places[a]) if a == b else grid.way(number, places[a], places[b]), number in backwards)
        for number, (a, b) in enumerate(forward)
    )
    width = max((one.x + one.width for one in places), default=0.0)
    lowest = [one.y + one.height for one in places] + [y for route in routes for _, y in route.points]
    return Plan(places, routes, width, max(lowest, default=0.0))


def _loop(place: Place) -> tuple[Point, ...]:
    right = place.x + place.width
    return ((right - min(26, place.width / 2), place.y), (right - min(10, place.width / 4), place.y))


def _closing(count: int, arrows: Sequence[tuple[int, int]]) -> set[int]:
    """The arrows that lead back to a box on the way to them."""
    onward: list[list[tuple[int, int]]] = [[] for _ in range(count)]
    for number, (source, target) in enumerate(arrows):
        onward[source].append((number, target))
    closing, entered, left = set(), [False] * count, [False] * count
    for start in range(count):
        if entered[start]:
            continue
        entered[start] = True
        way = [(start, iter(onward[start]))]
        while way:
            box, rest = way[-1]
            step = next(rest, None)
            if step is None:
                left[box] = True
                way.pop()
                continue
            number, target = step
            if not entered[target]:
                entered[target] = True
                way.append((target, iter(onward[target])))
            elif not left[target]:
                closing.add(number)
    return closing


def _columns(count: int, arrows: Sequence[tuple[int, int]]) -> list[int]:
    """The column of each box: right of everything that points at it."""
    waiting, onward = [0] * count, defaultdict(list)
    for source, target in arrows:
        if source != target:
            waiting[target] += 1
            onward[source].append(target)
    columns = [0] * count
    ready = [box for box in range(count) if not waiting[box]]
    for box in ready:  # grows while it is walked
        for target in onward[box]:
            columns[target] = max(columns[target], columns[box] + 1)
            waiting[target] -= 1
            if not waiting[target]:
                ready.append(target)
    return columns


class _Grid:
    """Columns of slots: one for each box, and one for each arrow in each column that it passes."""

    def __init__(
        self, sizes: Sequence[tuple[float, float]], columns: Sequence[int], arrows: Sequence[tuple[int, int]]
    ) -> None:
        self._sizes = sizes
        self._boxes = len(sizes)
        self._column = list(columns)
        self._arrows = arrows
        self._passing: list[list[int]] = []  # the slots of each arrow, from left to right
        self._before: dict[int, list[int]] = defaultdict(list)
        self._after: dict[int, list[int]] = defaultdict(list)
        for source, target in arrows:
            self._passing.append(self._lead(source, target))
        self._slots = self._first_order()
        self._sides = self._spread()
        self._middle = [0.0] * len(self._column)

    def _lead(self, source: int, target: int) -> list[int]:
        if source == target:
            return []
        first = len(self._column)
        self._column.extend(range(self._column[source] + 1, self._column[target]))
        passing = list(range(first, len(self._column)))
        way = [source, *passing, target]
        for left, right in pairwise(way):
            self._after[left].append(right)
            self._before[right].append(left)
        return passing

    def _first_order(self) -> list[list[int]]:
        """Slots in the order of a walk, which keeps what hangs together side by side."""
        slots: list[list[int]] = [[] for _ in range(max(self._column, default=-1) + 1)]
        met = [False] * len(self._column)
        for start in range(self._boxes):
            pending = [start]
            while pending:
                slot = pending.pop()
                if not met[slot]:
                    met[slot] = True
                    slots[self._column[slot]].append(slot)
                    pending.extend(reversed(self._after[slot]))
        return slots

    def _spread(self) -> list[tuple[float, float]]:
        """The left and right sides of the columns, each as wide as the widest of its boxes."""
        x, sides = 0.0, []
        for column in self._slots:
            width = max((self._sizes[slot][0] for slot in column if slot < self._boxes), default=0.0)
            sides.append((x, x + width))
            x += width + BETWEEN_COLUMNS
        return sides

    # -- order --

    def order(self) -> None:
        """Order the slots of each column by their neighbours, and keep the order with the fewest crossings."""
        best, fewest = self._slots, self._crossings()
        for sweep in range(SWEEPS):
            rightward = sweep % 2 == 0
            self._slots = list(self._slots)
            ranks = self._ranks()
            for column in self._sweep(rightward):
                self._sort(column, self._before if rightward else self._after, ranks)
            crossings = self._crossings()
            if crossings < fewest:
                best, fewest = self._slots, crossings
        self._slots = best

    def _sweep(self, rightward: bool) -> Iterable[int]:
        count = len(self._slots)
        return range(1, count) if rightward else range(count - 2, -1, -1)

    def _sort(self, column: int, neighbours: dict[int, list[int]], ranks: list[int]) -> None:
        """By the mean of the ranks of neighbours; a slot without any stays at its rank."""
        wanted = {
            slot: sum(ranks[one] for one in near) / len(near) if (near := neighbours[slot]) else ranks[slot]
            for slot in self._slots[column]
        }
        self._slots[column] = sorted(self._slots[column], key=lambda slot: wanted[slot])
        for rank, slot in enumerate(self._slots[column]):
            ranks[slot] = rank

    def _ranks(self) -> list[int]:
        ranks = [0] * len(self._column)
        for column in self._slots:
            for rank, slot in enumerate(column):
                ranks[slot] = rank
        return ranks

    def _crossings(self) -> int:
        ranks = self._ranks()
        found = 0
        for column, onward in pairwise(self._slots):
            met = [rank for slot in column for rank in sorted(ranks[one] for one in self._after[slot])]
            found += _inversions(met, len(onward))
        return found

    # -- places --

    def _height(self, slot: int) -> float:
        return self._sizes[slot][1] if slot < self._boxes else 0.0

    def _room(self, upper: int, lower: int) -> float:
        """How far apart the middles of two slots must be that follow each other in a column."""
        both = upper < self._boxes and lower < self._boxes
        return (self._height(upper) + self._height(lower)) / 2 + (BETWEEN_BOXES if both else BETWEEN_ARROWS)

    def settle(self) -> None:
        """Move slots as near to the middle of their neighbours as their order and their room allow."""
        for slots in self._slots:
            for upper, lower in pairwise(slots):
                self._middle[lower] = self._middle[upper] + self._room(upper, lower)
        for sweep in range(SWEEPS):
            rightward = sweep % 2 == 1
            for column in self._sweep(rightward):
                self._settle(self._slots[column], self._before if rightward else self._after)
        highest = min((self._middle[slot] - self._height(slot) / 2 for slot in range(len(self._column))), default=0.0)
        self._middle = [one - highest for one in self._middle]

    def _settle(self, slots: Sequence[int], neighbours: dict[int, list[int]]) -> None:
        shift, shifts = 0.0, []
        for number, slot in enumerate(slots):
            shift += self._room(slots[number - 1], slot) if number else 0.0
            shifts.append(shift)
        wanted = [
            (sum(self._middle[one] for one in near) / len(near) if (near := neighbours[slot]) else self._middle[slot])
            - shift
            for slot, shift in zip(slots, shifts, strict=True)
        ]
        weights = [1.0 if slot < self._boxes else STRAIGHT for slot in slots]
        for slot, shift, level in zip(slots, shifts, _rising(wanted, weights), strict=True):
            self._middle[slot] = level + shift

    def places(self) -> tuple[Place, ...]:
        """The boxes, each at the left of its column."""
        return tuple(
            Place(self._sides[self._column[box]][0], self._middle[box] - height / 2, width, height)
            for box, (width, height) in enumerate(self._sizes)
        )

    def way(self, number: int, source: Place, target: Place) -> tuple[Point, ...]:
        """The points of an arrow between two boxes, through its slots."""
        points = [(source.x + source.width, source.middle)]
        points.append((self._sides[self._column[self._arrows[number][0]]][1], source.middle))
        for slot in self._passing[number]:
            points += [(side, self._middle[slot]) for side in self._sides[self._column[slot]]]
        return (*points, (target.x, target.middle))


def _inversions(ranks: Sequence[int], count: int) -> int:
    """How many pairs stand in the wrong order: a count of crossings."""
    tree, found = [0] * (count + 1), 0
    for seen, rank in enumerate(ranks):
        found += seen - _sum(tree, rank + 1)
        at = rank + 1
        while at <= count:
            tree[at] += 1
            at += at & -at
    return found


def _sum(tree: Sequence[int], at: int) -> int:
    total = 0
    while at:
        total += tree[at]
        at -= at & -at
    return total


def _rising(wanted: Sequence[float], weights: Sequence[float]) -> Iterator[float]:
    """The levels nearest to the wanted ones that never fall: neighbours that would are drawn to their mean."""
    blocks: list[tuple[float, float, int]] = []  # level, weight, how many
    for level, weight in zip(wanted, weights, strict=True):
        block = (level, weight, 1)
        while blocks and blocks[-1][0] > block[0]:
            before = blocks.pop()
            both = before[1] + block[1]
            block = ((before[0] * before[1] + block[0] * block[1]) / both, both, before[2] + block[2])
        blocks.append(block)
    for level, _, count in blocks:
        yield from [level] * count
