"""A run from files to report: what is judged, what is hidden, and what a finding tells."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from nosync_lint.config import load_config
from nosync_lint.finding import Finding
from nosync_lint.pipeline import run
from nosync_lint.report import Report

Lint = Callable[..., Report]

POOL = """
import torch

class Pool:
    def __init__(self, device):
        self.owner = torch.zeros(8, dtype=torch.int64, device="cuda")
    def alloc(self):
        return 1
    def free(self, pages: torch.LongTensor):
        self._give_back(pages)
    def _give_back(self, pages):
        self.owner[pages] = -1
"""


def the(report: Report) -> Finding:
    (finding,) = report.findings
    return finding


def test_a_finding_tells_its_place_its_heat_and_its_chain(lint: Lint) -> None:
    finding = the(lint({"pool.py": POOL}))
    assert (finding.code, finding.filename, finding.heat) == ("NSL101", "pool.py", "hot")
    assert finding.span == (12, 9, 12, 26)
    assert finding.root == "pool.Pool.free"
    assert [hop.row for hop in finding.flow] == [9, 10, 12]
    assert finding.cure.startswith("self.owner.index_fill_(0, pages")
    assert 6 in [hop.row for hop in finding.evidence]


def test_the_source_of_every_finding_is_at_hand(lint: Lint) -> None:
    assert lint({"pool.py": POOL}).sources["pool.py"][11] == "        self.owner[pages] = -1"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=["lf", "crlf", "cr"])
def test_places_do_not_depend_on_line_ends(lint: Lint, end: str) -> None:
    assert the(lint({"pool.py": POOL.replace("\n", end).encode()})).span == (12, 9, 12, 26)


CURES = {
    "self.owner[(a + b) * 2]": "self.owner.index_fill_(0, ((a + b) * 2).reshape(-1).long(), -1)",
    "self.owner[a]": "self.owner.index_fill_(0, a.reshape(-1).long(), -1)",
    "self.owner[3]": "self.owner[3].fill_(-1)",
    "self.table[:, a]": "self.table.index_fill_(1, a.reshape(-1).long(), -1)",
    "self.table[1:3, a]": "self.table[1:3, a] = self.table.new_full((), -1)",
    "self.table[a, b]": "self.table[a, b] = self.table.new_full((), -1)",
}


@pytest.mark.parametrize("target", CURES)
def test_a_cure_is_code_that_means_the_same(lint: Lint, target: str) -> None:
    text = f"""
import torch
class Pool:
    def __init__(self):
        self.owner = torch.zeros(8, dtype=torch.int64, device="cuda")
        self.table = torch.zeros(8, 8, dtype=torch.int64, device="cuda")
    def alloc(self): ...
    def free(self, a: torch.LongTensor, b: torch.LongTensor):
        {target} = -1
"""
    assert the(lint({"pool.py": text})).cure == CURES[target]


def test_an_augmented_attribute_is_read_once(lint: Lint) -> None:
    text = "import torch\ndef free_all(o):\n    o.get(torch.unique(torch.zeros(3, device='cuda'))).n += 1\n"
    assert [finding.code for finding in lint({"a.py": text}).findings] == ["NSL301"]


def test_the_working_directory_changes_nothing_but_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = tmp_path / "tools" / "tests" / "serve"
    project.mkdir(parents=True)
    (project / "nosync-lint.toml").write_text('exclude = ["tests"]\n')
    (project / "pool.py").write_text(POOL)
    (project / "main.py").write_text("from pool import Pool\n")
    found = []
    for folder, path in ((project, "."), (project.parent, "serve"), (tmp_path, "tools")):
        monkeypatch.chdir(folder)
        report = run([path], load_config(project / "nosync-lint.toml"), cache=False)
        found.append([(one.code, one.heat, one.root, one.span) for one in report.findings])
    assert found[0] == found[1] == found[2] != []


UMLAUTS = POOL.replace("        self.owner[pages]", "        ä = 'öß'; self.owner[pages]")


def test_columns_count_code_points(lint: Lint) -> None:
    assert the(lint({"pool.py": UMLAUTS})).span == (12, 19, 12, 36)


def test_columns_count_code_points_in_a_declared_encoding(lint: Lint) -> None:
    assert the(lint({"pool.py": ("# coding: latin-1" + UMLAUTS).encode("latin-1")})).span == (12, 19, 12, 36)


def test_only_given_paths_are_reported_and_the_whole_project_is_linked(lint: Lint) -> None:
    files = {
        "core/table.py": "def store(table, rows):\n    table[rows] = 0\n",
        "app.py": "import torch\nfrom core.table import store\ndef step():  # nosync-lint: hot\n"
        "    store(torch.zeros(3, device='cuda'), torch.arange(3, device='cuda'))\n",
    }
    assert the(lint(files, paths=("core",))).filename == "core/table.py"
    report = lint(files, paths=("app.py",))
    assert report.findings == ()
    assert (report.files_reported, report.files_linked) == (1, 2)


@pytest.mark.parametrize(
    "folder",
    ["demo", "fixtures/lost-segment-override/across_modules", "fixtures/dedup-with-known-position/across_modules"],
)
def test_a_file_has_the_same_findings_alone_as_with_all_others(lint: Lint, folder: str) -> None:
    home = Path(__file__).parents[1] / folder
    names = sorted(
        path.relative_to(home).as_posix() for path in home.rglob("*") if path.suffix in (".py", ".cuh", ".cu")
    )
    files = {name: (home / name).read_bytes() for name in names}
    together = lint(files, heat="any", min_confidence="possible").findings
    assert len({one.filename for one in together}) > 1
    for name in names:
        alone = lint(files, paths=(name,), heat="any", min_confidence="possible").findings
        assert [replace(one, group=None) for one in alone] == [
            replace(one, group=None) for one in together if one.filename == name
        ]


def test_what_is_wrong_with_files_that_are_only_linked_is_not_reported(lint: Lint) -> None:
    files = {"bad.py": "def f(:\n", "loose.py": "x = 1  # nosync-lint: ignore[NSL101]\n", "app/a.py": "x = 1\n"}
    assert {finding.code for finding in lint(files).findings} == {"NSL000", "NSL001", "NSL002"}
    assert lint(files, paths=("app",)).findings == ()


def test_a_tensor_argument_of_a_hot_root_is_the_evidence(lint: Lint) -> None:
    text = "import torch\n\n\ndef step(ids: torch.Tensor):  # nosync-lint: hot\n    return ids.unique()\n"
    assert [hop.row for hop in the(lint({"a.py": text})).evidence] == [4]


def test_a_moved_finding_keeps_its_fingerprint_and_a_second_one_has_its_own(lint: Lint) -> None:
    first = the(lint({"pool.py": POOL})).fingerprint
    assert the(lint({"pool.py": "# moved\n" * 9 + POOL})).fingerprint == first
    both = lint({"pool.py": POOL + "        self.owner[pages] = -1\n"}).findings
    assert [one.fingerprint == first for one in both] == [True, False]
    assert the(lint({"pool.py": POOL.replace("self.owner[pages] =", "self.owner[pages + 1] =")})).fingerprint != first
    assert the(lint({"pool.py": POOL.replace("_give_back", "_take_back")})).fingerprint != first


def test_what_is_hidden_is_counted(lint: Lint) -> None:
    text = POOL + (
        "    def clear(self, pages: torch.LongTensor):\n        self.owner[pages] = 0\n"
        "    def unused(self, pages: torch.LongTensor, what):\n        self.owner[pages] = 0\n"
        "        self.owner[what] = 0\n        self.owner[pages] = 3  # nosync-lint: ignore[NSL101] why\n"
    )
    hidden = lint({"pool.py": text}).hidden
    assert (hidden.cold, hidden.unreached, hidden.possible, hidden.suppressed) == (1, 1, 1, 1)
    assert len(lint({"pool.py": text}, heat="any", min_confidence="possible").findings) == 4


def test_findings_with_one_sink_share_a_group_and_a_single_one_has_none(lint: Lint) -> None:
    base = """
    import torch
    class Base:
        def __init__(self):
            self.idle = torch.arange(8, device="cuda")
        def put(self, rows):
            self.idle = torch.cat([self.idle, torch.unique(self.idle)])
        def put_run(self, rows, start):
            self.put(rows)
    class Good(Base):
        def put_run(self, rows, start):
            self.idle = rows[start::2]
    def step(base: Base, rows: torch.Tensor):  # nosync-lint: hot
        base.put_run(rows, start=1)
    """
    groups = {finding.code: finding.group for finding in lint({"base.py": base}).findings}
    assert set(groups) == {"NSL301", "NSL501", "NSL502"}
    assert set(groups.values()) == {"base.py:7"}
    alone = lint({"base.py": base}, select=("NSL501",)).findings
    assert [finding.group for finding in alone] == [None]


def test_findings_come_in_the_order_of_files_and_rows(lint: Lint) -> None:
    files = {"b.py": POOL, "a.py": POOL + "        self.owner[pages] = 0\n", "a/c.py": POOL}
    places = [(finding.filename, finding.span.row) for finding in lint(files).findings]
    assert places == sorted(places)
    assert len(places) == 4


def test_an_empty_project_is_clean_and_says_nothing(lint: Lint) -> None:
    report = lint({})
    assert (report.findings, report.exit_code, report.files_linked) == ((), 0, 0)


def test_a_severity_of_information_does_not_fail_a_run() -> None:
    from dataclasses import replace

    from nosync_lint.finding import Severity

    assert [severity.reaches(Severity.WARNING) for severity in Severity] == [True, True, False]
    assert Report((), failures=("rule crashed",)).exit_code == 2
    assert replace(Report(()), notes=("hint",)).exit_code == 0


def test_cached_and_parallel_runs_give_the_same_report(lint: Lint, tmp_path: Path) -> None:
    files = {f"m{i}.py": POOL + f"# {i}\n" * 2500 for i in range(40)}
    first = lint(files)
    again = [lint(files, jobs=2), lint(files, jobs=2, cache=True), lint(files, cache=True)]
    assert len(first.findings) == 40
    assert [report.findings == first.findings for report in again] == [True] * 3
    assert (tmp_path / "project" / ".nosync_lint_cache").is_dir()
