"""Where boxes are placed and arrows are led: nothing lies on anything else, whatever the graph."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from nosync_lint.report.layout import Place, Plan, Point, Route, plan

Graph = tuple[list[tuple[float, float]], list[tuple[int, int]]]


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Boxes and arrows between them: trees, circles, arrows to themselves and twice the same."""
    side = st.integers(10, 300).map(float)
    sizes = draw(st.lists(st.tuples(side, side), min_size=1, max_size=24))
    box = st.integers(0, len(sizes) - 1)
    return sizes, draw(st.lists(st.tuples(box, box), max_size=60))


@settings(deadline=None)
@given(graphs())
def test_no_box_lies_on_another(graph: Graph) -> None:
    places = plan(*graph).places
    for number, one in enumerate(places):
        for other in places[:number]:
            beside = one.x + one.width <= other.x or other.x + other.width <= one.x
            below = one.y + one.height <= other.y + 0.01 or other.y + other.height <= one.y + 0.01
            assert beside or below, (one, other)


@settings(deadline=None)
@given(graphs())
def test_boxes_keep_their_sizes_and_the_drawing_holds_them_all(graph: Graph) -> None:
    sizes, arrows = graph
    laid = plan(sizes, arrows)
    assert [(one.width, one.height) for one in laid.places] == sizes
    assert all(one.x >= 0 and one.y >= -0.01 for one in laid.places)
    assert all(one.x + one.width <= laid.width and one.y + one.height <= laid.height for one in laid.places)
    assert all(0 <= x <= laid.width and -0.01 <= y <= laid.height for one in laid.routes for x, y in one.points)


@settings(deadline=None)
@given(graphs())
def test_every_arrow_joins_its_boxes(graph: Graph) -> None:
    sizes, arrows = graph
    laid = plan(sizes, arrows)
    assert len(laid.routes) == len(arrows)
    for (source, target), route in zip(arrows, laid.routes, strict=True):
        if source == target:
            box = laid.places[source]
            assert all(y == box.y and box.x <= x <= box.x + box.width for x, y in route.points)
            continue
        left, right = (target, source) if route.backwards else (source, target)
        start, end = laid.places[left], laid.places[right]
        assert route.points[0] == (start.x + start.width, start.middle)
        assert route.points[-1] == (end.x, end.middle)
        assert start.x + start.width < end.x


@settings(deadline=None)
@given(graphs())
def test_no_arrow_runs_through_a_box(graph: Graph) -> None:
    sizes, arrows = graph
    laid = plan(sizes, arrows)
    for (source, target), route in zip(arrows, laid.routes, strict=True):
        for x, y in _drawn(route) if source != target else ():
            assert not any(_inside(x, y, one) for one in laid.places), (route, x, y)


def _inside(x: float, y: float, place: Place) -> bool:
    return place.x < x < place.x + place.width and place.y < y < place.y + place.height


def _drawn(route: Route) -> Iterator[Point]:
    """Points along an arrow, as it is drawn: straight and in curves in turn."""
    for number, ((x, y), (to_x, to_y)) in enumerate(zip(route.points, route.points[1:], strict=False)):
        for step in range(11):
            part = step / 10
            share = part if number % 2 == 0 else 3 * part**2 - 2 * part**3
            yield x + (to_x - x) * part, y + (to_y - y) * share


def test_arrows_point_right_unless_they_close_a_circle() -> None:
    laid = plan([(10, 10)] * 4, [(0, 1), (1, 2), (2, 0), (0, 3), (2, 3)])
    assert [route.backwards for route in laid.routes] == [False, False, True, False, False]
    assert _columns(laid.places) == [0, 1, 2, 3]


def test_a_box_of_a_circle_that_is_met_first_stands_left() -> None:
    assert _columns(plan([(10, 10)] * 2, [(1, 0), (0, 1)]).places) == [0, 1]


def _columns(places: Sequence[Place]) -> list[int]:
    sides = sorted({one.x for one in places})
    return [sides.index(one.x) for one in places]


def test_a_chain_is_drawn_as_a_straight_line() -> None:
    laid = plan([(40, 10), (40, 30), (40, 20)], [(0, 1), (1, 2)])
    assert len({one.middle for one in laid.places}) == 1


def test_arrows_are_uncrossed() -> None:
    """Two chains whose ends are given in the other order: nothing needs to cross."""
    laid = plan([(10, 10)] * 4, [(0, 3), (1, 2)])
    assert (laid.places[0].y < laid.places[1].y) == (laid.places[3].y < laid.places[2].y)


def test_the_same_graph_is_drawn_the_same() -> None:
    graph = [(50.0, 20.0)] * 9, [(0, 4), (1, 4), (4, 7), (0, 8), (2, 5), (5, 8), (3, 5), (8, 6)]
    assert plan(*graph) == plan(*graph)


def test_nothing_makes_an_empty_drawing() -> None:
    assert plan([], []) == Plan((), (), 0, 0)
