"""The HTML page in a real Chromium: it filters, opens call paths, says nothing on the console and loads nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from nosync_lint.cli import main
from nosync_lint.finding import Confidence, Finding, Heat, Hop, Severity, Suppressed
from nosync_lint.report import Report
from nosync_lint.report.formats import Style, write
from nosync_lint.source import Span
from tests.report.browser import Browser

ROOT = Path(__file__).resolve().parent.parent.parent
Show = Callable[..., Browser]
DEMO = 5
"""Findings in the demo."""


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "report.html"
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        assert main(["check", "demo", "--no-cache", "-q", "--output-format", "html", "-o", str(path)]) == 1
    return path


@pytest.fixture
def show(browser: Browser, demo: Path, tmp_path: Path) -> Iterator[Show]:
    """Opens the page of the demo or of a report. At the end it must have loaded nothing and been silent."""
    browser.errors(), browser.requests()
    opened = []

    def show(report: Report | None = None, state: str = "") -> Browser:
        path = demo
        if report is not None:
            path = tmp_path / "report.html"
            with path.open("w", encoding="utf-8") as out:
                write(report, "html", out, Style())
        browser.open("about:blank")
        opened.append(f"{path.as_uri()}")
        browser.open(f"{path.as_uri()}{state}")
        deadline = time.monotonic() + 60  # a long page on a busy machine is not ready when it is loaded
        while browser.run("document.documentElement.dataset.ready") != "yes":
            assert time.monotonic() < deadline, "the page never became ready"
            time.sleep(0.05)
        return browser

    yield show
    assert browser.errors() == []
    assert set(browser.requests()) - {"about:blank"} == set(opened)


def codes(browser: Browser) -> list[str]:
    return browser.texts("article .code")


def until(browser: Browser, script: str, value: object) -> None:
    """Waits for what the page does after a pause."""
    for _ in range(200):
        if (found := browser.run(script)) == value:
            return
        time.sleep(0.05)
    raise AssertionError(f"{script} stays {found!r}")


COUNT = "document.getElementById('count').textContent"


def test_the_demo_is_shown_whole(show: Show) -> None:
    page = show()
    assert codes(page) == ["NSL502", "NSL601", "NSL501", "NSL301", "NSL101"]
    assert page.run(COUNT) == "5 of 5 findings"
    assert page.texts(".file h2 .path-name") == [
        "demo/tinyserve/allocator.py",
        "demo/tinyserve/kernels/conv_state.cuh",
        "demo/tinyserve/shared_pool.py",
    ]
    assert page.texts("article:last-of-type mark")[-1] == "self.page_owner[pages]"
    assert page.texts(".file:last-of-type article:last-of-type .row") == [""] * 5
    assert page.run("[...document.querySelectorAll('.at .row')].at(-1).dataset.row") == "31"


def test_a_search_is_typed(show: Show) -> None:
    page = show()
    page.type("#search", "_return page_owner")
    until(page, COUNT, "1 of 5 findings")
    assert codes(page) == ["NSL101"]
    assert page.run("location.hash") == "#q=_return+page_owner"
    page.click("#clear")
    assert len(codes(page)) == DEMO
    assert page.run("location.hash") == ""


def test_findings_are_filtered_by_heat_and_rule(show: Show) -> None:
    page = show()
    page.click("#heat [data-value=hot]")
    assert codes(page) == ["NSL502", "NSL301", "NSL101"]
    page.click("#panels [data-key=rule][data-value=NSL101]")
    assert codes(page) == ["NSL101"]
    assert page.run(COUNT) == "1 of 5 findings"
    assert page.run("location.hash") == "#heat=hot&rule=NSL101"
    assert page.texts("#panels .rule .measure .number") == ["1", "1", "1"]  # what the heat leaves
    page.click("#panels [data-key=rule][data-value=NSL101]")
    assert len(codes(page)) == 3


def test_a_rule_and_a_file_are_chosen_from_lists(show: Show) -> None:
    page = show()
    choose = "((list, value) => { list.value = value; list.dispatchEvent(new Event('change')) })"
    page.run(f"{choose}(document.getElementById('file'), 'demo/tinyserve/shared_pool.py')")
    assert codes(page) == ["NSL501", "NSL301", "NSL101"]
    page.run(f"{choose}(document.getElementById('rule'), 'NSL301')")
    assert codes(page) == ["NSL301"]
    page.run(f"{choose}(document.getElementById('file'), '')")
    assert codes(page) == ["NSL301"]


def test_findings_of_one_cause_are_brought_together(show: Show) -> None:
    page = show()
    page.click(".one-cause")
    assert codes(page) == ["NSL502", "NSL501", "NSL301"]


def test_a_filter_that_leaves_nothing_says_so(show: Show) -> None:
    page = show(state="#q=zzzz")
    assert page.texts("#results") == ["No finding passes these filters."]
    assert page.run(COUNT) == "0 of 5 findings"


def test_a_call_path_is_drawn_when_it_is_opened(show: Show) -> None:
    page = show()
    assert page.texts("svg.path") == []
    page.click("article[aria-label^=NSL101] .chain summary")
    until(page, "document.querySelectorAll('svg.path').length", 1)
    assert page.texts("svg.path .note") == [
        "hot root SharedPoolAllocator.free (method of an allocator or pool)",
        "calls SharedPoolAllocator._return",
        "synchronises here",
    ]
    assert page.texts("svg.path .place") == [f"demo/tinyserve/shared_pool.py:{row}" for row in (27, 28, 31)]
    assert page.texts("svg.path .source")[-1] == "self.page_owner[pages] = NO_OWNER"
    assert page.run("document.querySelectorAll('svg.path .hop.root.heat-hot, svg.path .hop.sync').length") == 2
    assert page.run("document.querySelectorAll('svg.path .edge').length") == 2


OVERLAPS = """(() => {
  const boxes = [...document.querySelectorAll('svg.path rect')].map((one) => one.getBBox());
  const texts = [...document.querySelectorAll('svg.path .hop')].map((hop) => {
    const frame = hop.querySelector('rect').getBBox();
    return [...hop.querySelectorAll('text')].every((text) => {
      const box = text.getBBox();
      return box.x >= frame.x && box.x + box.width <= frame.x + frame.width && box.y + box.height <= frame.y + frame.height;
    });
  });
  const apart = boxes.every((one, n) => boxes.slice(n + 1).every((other) => one.y + one.height <= other.y));
  return [apart, texts.every(Boolean), boxes.length];
})()"""


def test_the_boxes_of_a_call_path_hold_their_texts_and_lie_apart(show: Show) -> None:
    flow = tuple(Hop(f"serve/größe/{'deep/' * n}loop.py", n + 1, f"calls `{'名前' * n}step_{n}`") for n in range(14))
    page = show(Report((replace(made(0), flow=flow),), sources={flow[3].filename: ("x = 1  # " + "W" * 90,) * 9}))
    page.click(".chain summary")
    until(page, "document.querySelectorAll('svg.path').length", 1)
    assert page.run(OVERLAPS) == [True, True, 14]


def test_colours_turn_dark_and_light(show: Show) -> None:
    page = show()
    background = "getComputedStyle(document.body).backgroundColor"
    light = page.run(background)
    page.click("#theme")
    assert page.run("document.documentElement.dataset.theme") == "dark"
    assert page.run(background) != light
    assert page.run("location.hash") == "#theme=dark"
    page.click("article .anchor")
    assert page.run("document.documentElement.dataset.theme") == "dark"
    page.click("#theme")
    assert page.run(background) == light


def test_the_address_brings_the_state_back(show: Show) -> None:
    page = show(state="#heat=hot&theme=dark&q=distinct")
    assert codes(page) == ["NSL301"]
    assert page.run("document.getElementById('search').value") == "distinct"
    assert page.run("document.documentElement.dataset.theme") == "dark"
    assert page.texts("#heat [aria-pressed=true]") == ["hot1"]


def test_a_link_to_a_finding_opens_it(show: Show) -> None:
    page = show(Report(tuple(made(n) for n in range(300))), state="#open=id250")
    assert page.run("document.activeElement.id") == "f-id250"
    assert page.run("[...document.querySelectorAll('#f-id250 details')].every((one) => one.open)") is True


def test_the_page_is_used_by_keyboard(show: Show) -> None:
    page = show()
    key = "dispatchEvent(new KeyboardEvent('keydown', {key: arguments[0], bubbles: true}))"
    for name in ("j", "j", "j", "k"):
        page.run(f"document.activeElement.{key}", name)
    assert (
        page.run("document.activeElement.getAttribute('aria-label')")
        == "NSL601 demo/tinyserve/kernels/conv_state.cuh row 42"
    )
    page.run(f"document.activeElement.{key}", "/")
    assert page.run("document.activeElement.id") == "search"


def made(number: int, **other: object) -> Finding:
    finding = Finding(
        "NSL201", "item-read", f"read {number}", f"serve/file_{number // 20}.py", Span(1, 1, 1, 2), Severity.WARNING,
        Confidence.LIKELY, "keep it there", Heat.HOT if number % 2 else Heat.COLD,
        (Hop("serve/a.py", 1, "hot root"), Hop("serve/b.py", number + 1, "synchronises here")), root="Loop.step",
        fingerprint=f"id{number}",
    )  # fmt: skip
    return replace(finding, **other)  # type: ignore[arg-type]


def test_ten_thousand_findings_are_drawn_as_the_reader_comes_near(show: Show) -> None:
    page = show(Report(tuple(made(number) for number in range(10_000))))
    assert page.run(COUNT) == "10,000 of 10,000 findings"
    first = page.run("document.querySelectorAll('article').length")
    assert 0 < first < 500
    page.run("scrollTo(0, document.body.scrollHeight)")
    until(page, f"document.querySelectorAll('article').length > {first}", True)
    page.click("#heat [data-value=hot]")
    assert page.run(COUNT) == "5,000 of 10,000 findings"
    assert page.run("document.querySelectorAll('article').length") < 500


def test_accepted_findings_have_their_own_list(show: Show) -> None:
    accepted = Suppressed(made(1), "ignore", "read once at the start", 7, "@ops", "2027-01-31")
    page = show(Report((made(0),), suppressed=(accepted,)))
    assert page.texts(".message") == ["read 0"]
    page.click("#view [data-value=accepted]")
    assert page.texts(".message") == ["read 1"]
    assert page.texts("article .accepted") == [
        "Accepted by ignore in row 7: read once at the start, @ops, until 2027-01-31"
    ]
    assert page.run(COUNT) == "1 of 1 finding"


def test_findings_are_counted_by_owner_where_owners_are_known(show: Show) -> None:
    page = show(Report((made(0), made(30), made(31)), owners={"serve/file_1.py": "@serving"}))
    assert page.texts(".panel h2") == ["By rule", "By heat", "By owner"]
    page.click("#panels [data-key=owner][data-value='@serving']")
    assert page.texts(".message") == ["read 30", "read 31"]
    page.click("#panels [data-key=owner][data-value='@serving']")
    page.click("#panels [data-key=owner][data-value=nobody]")
    assert page.texts(".message") == ["read 0"]


def test_an_empty_report_and_its_notes(show: Show) -> None:
    page = show(Report((), failures=("rule `NSL101` crashed",), notes=("no hot root",)))
    assert page.texts("#results") == ["Nothing was found."]
    assert page.texts(".banner:not(noscript *)")[-2:] == ["Failed rule NSL101 crashed", "Note no hot root"]


EVIL = "</script><script>window.run = 1</script><img src=x onerror='window.run = 2'><svg onload='window.run = 3'>"


def test_texts_of_the_project_stay_texts(show: Show) -> None:
    finding = made(
        0, message=EVIL, name=EVIL, filename=EVIL, scope=EVIL, root=EVIL, cure=EVIL, flow=(Hop(EVIL, 1, EVIL),),
        evidence=(Hop(EVIL, 1, EVIL),), group=EVIL,
    )  # fmt: skip
    report = Report(
        (finding, replace(finding, fingerprint="other")), sources={EVIL: (EVIL,)}, owners={EVIL: EVIL}, notes=(EVIL,),
        suppressed=(Suppressed(finding, EVIL, EVIL, 1, EVIL, EVIL),),
    )  # fmt: skip
    page = show(report)
    page.click("#unfold")
    until(page, "document.querySelectorAll('svg.path').length", 2)
    assert page.texts(".message") == [EVIL] * 2
    assert page.texts(".frame .text")[0].strip() == EVIL
    page.click("#view [data-value=accepted]")
    assert EVIL in page.texts("p.accepted")[0]
    assert page.run("[window.run === undefined, document.querySelectorAll('img, script, svg[onload]').length]") == [
        True,
        2,
    ]


def test_the_policy_stops_what_an_escaping_fault_would_let_in(browser: Browser, demo: Path, tmp_path: Path) -> None:
    """The same page with markup put into it: nothing of it runs, and it may load nothing."""
    path = tmp_path / "broken.html"
    path.write_text(demo.read_text(encoding="utf-8").replace("</main>", f"{EVIL.partition('</script>')[2]}</main>"))
    browser.open(path.as_uri())
    assert browser.run("document.querySelectorAll('main script, main img').length") == 2
    assert browser.run("window.run === undefined") is True
    assert len(codes(browser)) == DEMO
    told = " ".join(browser.errors())
    assert "script-src" in told
    assert "default-src" in told or "img-src" in told
