"""What the full report says, and how it looks on a terminal and in a pipe."""

from __future__ import annotations

import io
import re
from dataclasses import replace

import pytest

from nosync_lint.finding import Confidence, Finding, Heat, Hop, Severity
from nosync_lint.report import Hidden, Report
from nosync_lint.report.formats import Style
from nosync_lint.report.full import write
from nosync_lint.source import Span

POOL = (
    "class Pool:",
    "    def free(self, pages):",
    "        kept = pages[pages > 0]",
    "        self.owners[kept] = -1",
    "        self.count -= 1",
    "        return kept",
)
WRITE = Finding(
    code="NSL101",
    name="scalar-index-write",
    message="storing -1 through an integer tensor stops the host",
    filename="serve/pool.py",
    span=Span(4, 9, 4, 26),
    severity=Severity.ERROR,
    confidence=Confidence.CERTAIN,
    heat=Heat.HOT,
    cure="self.owners.index_fill_(0, kept, -1)",
    flow=(
        Hop("serve/loop.py", 12, "`Loop.step` calls `finish`"),
        Hop("serve/loop.py", 30, "`Loop.finish` calls `free`"),
        Hop("serve/pool.py", 4, "synchronises here"),
    ),
    evidence=(Hop("serve/pool.py", 9, "`owners` is made by torch.zeros(device='cuda')"),),
    root="Loop.step",
)
SINK = Hop("serve/base.py", 31, "`Base.free` reads a count back here")
LOST = Finding(
    code="NSL501",
    name="lost-segment-override",
    message="`RingPool` inherits `free_segment`",
    filename="serve/ring.py",
    span=Span(7, 7, 7, 15),
    severity=Severity.ERROR,
    confidence=Confidence.LIKELY,
    cure="override `free_segment`",
    flow=(Hop("serve/ring.py", 7, "`RingPool` is concrete"), Hop("serve/base.py", 20, "calls `free`"), SINK),
    related=(Hop("serve/paged.py", 55, "this sibling uses `start`"),),
    group="serve/base.py:31",
)
LOST_TOO = replace(
    LOST,
    message="`PinnedPool` inherits `free_segment`",
    filename="serve/pinned.py",
    flow=(Hop("serve/pinned.py", 3, "`PinnedPool` is concrete"), Hop("serve/base.py", 20, "calls `free`"), SINK),
)


def plain(report: Report, statistics: bool = False) -> str:
    out = io.StringIO()
    write(report, out, Style(statistics))
    return out.getvalue()


def colored(report: Report) -> str:
    out = io.StringIO()
    write(report, out, Style(color=True))
    return out.getvalue()


def without_ansi(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


@pytest.fixture(autouse=True)
def a_terminal_of_100_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("TERM", "xterm")


def test_a_plain_finding_starts_like_other_linters_and_tells_chain_evidence_and_cure() -> None:
    assert plain(Report((WRITE,), files_reported=1, files_linked=3)) == (
        "serve/pool.py:4:9: NSL101 scalar-index-write storing -1 through an integer tensor stops the host\n"
        "    error, certain, hot\n"
        "    chain from `Loop.step`:\n"
        "      serve/loop.py:12 `Loop.step` calls `finish`\n"
        "      -> serve/loop.py:30 `Loop.finish` calls `free`\n"
        "      -> serve/pool.py:4 synchronises here\n"
        "    believed because:\n"
        "      serve/pool.py:9 `owners` is made by torch.zeros(device='cuda')\n"
        "    instead: self.owners.index_fill_(0, kept, -1)\n"
        "1 shown; nothing hidden\n"
        "1 file reported, 3 linked\n"
    )


def test_plain_text_carries_no_ansi_and_only_ascii() -> None:
    text = plain(Report((WRITE, LOST, LOST_TOO), sources={"serve/pool.py": POOL}))
    assert "\x1b" not in text
    assert text.isascii()


def test_the_cure_of_several_lines_is_indented_below_its_first() -> None:
    text = plain(Report((replace(WRITE, cure="with a:\n    b()"),)))
    assert "    instead: with a:\n          b()\n" in text


def test_the_summary_says_what_was_hidden() -> None:
    report = Report((WRITE,), Hidden(warm=31, cold=80, unreached=1402, possible=55, suppressed=3))
    assert "1 shown; hidden: 31 warm, 80 cold, 1,402 unreached (--heat any), 55 possible (" in plain(report)
    assert "(--min-confidence possible), 3 suppressed\n" in plain(report)


@pytest.mark.parametrize(
    ("hidden", "told"),
    [
        (Hidden(warm=2), "2 warm (--heat warm)"),
        (Hidden(warm=2, cold=1, cured=4), "2 warm, 1 cold (--heat any), 4 cured"),
        (Hidden(likely=3), "3 likely (--min-confidence likely)"),
        (Hidden(possible=1, likely=3), "1 possible, 3 likely (--min-confidence possible)"),
        (Hidden(ignored=1, unchanged=2), "1 ignored, 2 unchanged"),
    ],
)
def test_the_summary_says_which_switch_shows_what_is_hidden(hidden: Hidden, told: str) -> None:
    assert f"0 shown; hidden: {told}\n" in plain(Report((), hidden))


def test_the_summary_counts_files_unresolved_calls_and_releases() -> None:
    report = Report(
        (),
        files_reported=12,
        files_linked=1040,
        calls_resolved=900,
        calls_unresolved=100,
        target_torch=("2.9", "2.10", "2.11"),
    )
    assert plain(report) == (
        "0 shown; nothing hidden\n"
        "12 files reported, 1,040 linked; 100 of 1,000 calls unresolved (10.0 %); for torch 2.9 to 2.11\n"
    )


@pytest.mark.parametrize(
    ("releases", "told"),
    [
        (("2.13",), "for torch 2.13"),
        (("2.9", "2.10"), "for torch 2.9, 2.10"),
        (("2.9", "2.11", "2.12"), "for torch 2.9, 2.11, 2.12"),
        (("2.9.1", "2.10.0", "2.11.0"), "for torch 2.9.1, 2.10.0, 2.11.0"),
        (("2.9", "2.10", "3.0"), "for torch 2.9, 2.10, 3.0"),
    ],
)
def test_only_neighbouring_releases_are_told_as_a_range(releases: tuple[str, ...], told: str) -> None:
    assert told + "\n" in plain(Report((), target_torch=releases))


def test_an_empty_report_is_not_empty() -> None:
    for text in (plain(Report(())), without_ansi(colored(Report(())))):
        assert text == "0 shown; nothing hidden\n0 files reported, 0 linked\n"


def test_failures_and_notes_are_told_before_the_summary() -> None:
    text = plain(Report((), failures=("rule NSL301 crashed on a.py",), notes=("no hot root: see --hot",)))
    assert text.startswith("failed: rule NSL301 crashed on a.py\nnote: no hot root: see --hot\n0 shown")


def test_statistics_count_per_rule_in_place_of_the_findings() -> None:
    text = plain(Report((WRITE, LOST, LOST_TOO)), statistics=True)
    assert text.startswith("2  NSL501  lost-segment-override\n1  NSL101  scalar-index-write\n3 shown")


def test_a_group_is_one_block_and_tells_the_shared_path_once() -> None:
    text = plain(Report((LOST_TOO, WRITE, LOST)))
    assert text.index("PinnedPool") < text.index("RingPool") < text.index("NSL101")
    for once in ("serve/base.py:31", "this sibling uses", "override `free_segment`"):
        assert text.count(once) == 1
    assert (
        "the 2 findings above share\n"
        "    path:\n"
        "      serve/base.py:20 calls `free`\n"
        "      -> serve/base.py:31 `Base.free` reads a count back here\n"
        "    related:\n"
        "      serve/paged.py:55 this sibling uses `start`\n"
        "    instead: override `free_segment`\n"
    ) in text


def test_a_group_of_several_rules_names_the_place_they_lead_to_and_keeps_its_chains() -> None:
    call = replace(
        LOST, code="NSL502", filename="serve/base.py", flow=(Hop("serve/loop.py", 3, "root"),), related=(SINK,)
    )
    sink = replace(WRITE, code="NSL301", filename="serve/base.py", span=Span(31, 5, 31, 9), group=LOST.group)
    text = plain(Report((call, sink, LOST, LOST_TOO)))
    assert text.index("NSL502") < text.index("NSL301") < text.index("NSL501")
    assert "the 2 findings above share\n" in text
    assert "the 4 findings above have one cause: serve/base.py:31\n" in text
    assert "chain from `Loop.step`:\n      serve/loop.py:12" in text
    assert text.index("serve/base.py:20 calls") > text.index("PinnedPool")


def test_a_group_of_one_is_an_ordinary_finding() -> None:
    assert "share" not in plain(Report((LOST,)))
    assert "shown by:\n" in plain(Report((LOST,)))


def test_a_group_without_a_common_place_still_says_that_it_is_one() -> None:
    other = replace(WRITE, group=LOST.group)
    text = plain(Report((other, LOST)))
    assert "share" not in text
    assert "the 2 findings above have one cause\n" in text


def test_findings_of_one_group_that_differ_in_everything_share_nothing() -> None:
    other = replace(LOST_TOO, flow=(Hop("x.py", 1, "x"),), related=(), cure="something else")
    assert "share" not in plain(Report((other, LOST)))


def test_a_terminal_gets_colour_the_source_frame_and_the_chain_as_a_tree() -> None:
    report = Report((WRITE,), seconds=1.25, sources={"serve/pool.py": POOL})
    text = colored(report)
    assert "\x1b[" in text
    assert without_ansi(text).splitlines() == [
        "serve/pool.py:4:9  NSL101 scalar-index-write  [certain, hot]",
        "  storing -1 through an integer tensor stops the host",
        "    2 │     def free(self, pages):",
        "    3 │         kept = pages[pages > 0]",
        "    4 │         self.owners[kept] = -1",
        "      │         ^^^^^^^^^^^^^^^^^",
        "    5 │         self.count -= 1",
        "    6 │         return kept",
        "  chain from `Loop.step`",
        "    serve/loop.py:12  `Loop.step` calls `finish`",
        "    └─ serve/loop.py:30  `Loop.finish` calls `free`",
        "       └─ serve/pool.py:4  synchronises here",
        "  believed because",
        "    serve/pool.py:9  `owners` is made by torch.zeros(device='cuda')",
        "  instead",
        "    self.owners.index_fill_(0, kept, -1)",
        "",
        "1 shown; nothing hidden",
        "0 files reported, 0 linked",
        "1.2 s",
    ]


def caret_line(source: str, span: Span) -> tuple[str, str]:
    report = Report((replace(WRITE, span=span),), sources={"serve/pool.py": (source,)})
    lines = without_ansi(colored(report)).splitlines()
    (row,) = [number for number, line in enumerate(lines) if re.fullmatch(r" +│ +\^+ *", line)]
    return lines[row - 1], lines[row].rstrip()


def test_carets_stand_below_the_span_after_tabs_and_wide_characters() -> None:
    assert caret_line("\tx[i] = 0", Span(1, 2, 1, 6)) == ("    1 │     x[i] = 0", "      │     ^^^^")
    assert caret_line("表[i] = 0", Span(1, 2, 1, 5)) == ("    1 │ 表[i] = 0", "      │   ^^^")
    assert caret_line("x['表'] = 0", Span(1, 1, 1, 7))[1] == "      │ ^^^^^^^"


def test_a_span_of_several_lines_is_underlined_to_the_end_of_its_first() -> None:
    assert caret_line("x[i] = f(", Span(1, 8, 3, 2))[1] == "      │        ^^"


def test_a_span_beyond_the_text_still_gets_a_caret() -> None:
    assert caret_line("x", Span(1, 5, 1, 9))[1] == "      │  ^"


def test_a_file_that_is_not_at_hand_has_no_frame() -> None:
    absent: dict[str, tuple[str, ...]] = {}
    short: dict[str, tuple[str, ...]] = {"serve/pool.py": POOL[:2]}
    for sources in (absent, short):
        assert "│" not in without_ansi(colored(Report((WRITE,), sources=sources)))


def test_a_narrow_terminal_wraps_prose_and_keeps_the_flagged_span_in_sight(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    source = f"{'value = call(' + 'argument, ' * 30}table[pages] = -1)  # {'and more ' * 50}"
    column = source.index("table") + 1
    report = Report((replace(WRITE, span=Span(1, column, 1, column + 12)),), sources={"serve/pool.py": (source,)})
    lines = without_ansi(colored(report)).splitlines()
    frame = next(line for line in lines if "table[pages]" in line)
    carets = next(line for line in lines if "^^^" in line)
    assert carets[frame.index("table") : frame.index("table") + 12] == "^" * 12
    assert carets.count("^") == 12
    assert frame.count("…") == 2
    assert all(len(line.rstrip()) <= 40 for line in (frame, carets))
    assert "  storing -1 through an integer tensor" in lines
    assert "    └─ serve/loop.py:30  `Loop.finish`" in lines
    assert "       calls `free`" in lines


def test_an_output_without_utf8_gets_ascii_drawing_and_escapes() -> None:
    for color in (False, True):
        raw = io.BytesIO()
        out = io.TextIOWrapper(raw, encoding="ascii", newline="")
        finding = replace(WRITE, message="the tensor `größe` stops the host")
        write(Report((finding,), sources={"serve/pool.py": (*POOL[:4], "    # 表")}), out, Style(color=color))
        out.flush()
        text = without_ansi(raw.getvalue().decode("ascii"))
        assert "gr\\xf6\\xdfe" in text
        assert not color or ("`- serve/loop.py:30" in text and "4 |     " in text and "\\u8868" in text)


def test_a_file_name_that_is_not_text_can_be_printed() -> None:
    for color in (False, True):
        raw = io.BytesIO()
        out = io.TextIOWrapper(raw, encoding="utf-8")
        write(Report((replace(WRITE, filename="b\udcff.py"),)), out, Style(color=color))
        out.flush()
        assert b"b\\udcff.py:4:9" in raw.getvalue()


def test_the_linted_text_cannot_command_the_terminal_or_reorder_a_line() -> None:
    hostile = "x\x1b[2J\u202e\x07\n[bold]"
    finding = replace(WRITE, message=hostile, cure=hostile, evidence=(Hop(hostile, 1, hostile),))
    report = Report((finding,), failures=(hostile,), sources={"serve/pool.py": (*POOL[:3], hostile)})
    for text in (plain(report), without_ansi(colored(report))):
        assert not set("\x1b\x07\u202e") & set(text)
        assert "x\\x1b[2J\\u202e\\x07" in text
        assert "[bold]" in text


def test_severity_information_is_shown_in_its_own_style() -> None:
    text = colored(Report((replace(WRITE, severity=Severity.INFO), replace(WRITE, severity=Severity.WARNING))))
    assert "\x1b[1;34m" in text
    assert "\x1b[1;33m" in text


def test_a_very_long_source_line_is_shown_uncoloured() -> None:
    source = "x[i] = 0 #" + "y" * 5_000
    assert caret_line(source, Span(1, 1, 1, 5))[1] == "      │ ^^^^"
