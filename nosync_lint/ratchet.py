"""What was before, held against what a run found: the baseline, budgets of syncs, and the changes since a revision."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from nosync_lint.baseline import (
    Baseline,
    BaselineError,
    Comparison,
    Scene,
    compare,
    load_baseline,
    salvage_baseline,
    updated,
)
from nosync_lint.budgets import check_budgets
from nosync_lint.config import ConfigError, Settings, display
from nosync_lint.finding import Finding, Suppressed
from nosync_lint.fingerprint import Identity
from nosync_lint.judge import Judged, Texts, identify, judge
from nosync_lint.link.program import Program
from nosync_lint.plural import counted
from nosync_lint.registry import rules as all_rules
from nosync_lint.rule import BudgetCheck, Rule, StaleEntry
from nosync_lint.since import changed_since
from nosync_lint.source import Span
from nosync_lint.touching import touches


@dataclass(frozen=True, slots=True)
class Before:
    """What a run is compared with. `update` is what becomes of the baseline: "write", "prune", or nothing."""

    baseline: Baseline | None = None
    changed: frozenset[str] | None = None
    update: str = ""

    def is_changed(self, filename: str) -> bool:
        """Whether a file counts as changed; all do where no revision is given."""
        return self.changed is None or os.path.realpath(filename) in self.changed


@dataclass(frozen=True, slots=True)
class Run:
    """What was judged: the program, the rules, and the names of the reported files that could be read."""

    program: Program
    rules: Sequence[Rule]
    settings: Settings
    texts: Texts
    files: frozenset[str]
    root: Path


@dataclass(frozen=True, slots=True)
class Settled:
    """The outcome of a run once everything is compared, and the baseline to write down."""

    judged: Judged
    notes: tuple[str, ...] = ()
    baseline: Baseline | None = None


def before(settings: Settings, paths: Sequence[str], since: str, update: str) -> Before:
    """Read what a run is compared with. Raises `ConfigError` for what cannot be used."""
    folder = settings.path.parent if settings.path is not None else _folder(paths)
    if update and not settings.baseline:
        raise ConfigError(f"--{update}-baseline needs a file: give --baseline FILE, or `baseline` in the configuration")
    if update and since:
        raise ConfigError(f"--since cannot be used with --{update}-baseline, which is about the whole project")
    baseline = None
    if settings.baseline:
        path = Path(os.path.abspath(folder / settings.baseline))
        if not path.parent.is_dir():
            raise ConfigError(f"{path}: there is no folder {path.parent} for a baseline")
        baseline = _to_write(path) if update == "write" else load_baseline(path)
    return Before(baseline, changed_since(since, folder) if since else None, update)


def _to_write(path: Path) -> Baseline:
    """A baseline that is written anew: what it holds, as far as it can be read."""
    if not path.exists():
        return Baseline(path)
    try:
        return load_baseline(path)
    except BaselineError:
        return salvage_baseline(path)


def _folder(paths: Sequence[str]) -> Path:
    first = Path(paths[0]) if paths else Path()
    return (first if first.is_dir() else first.parent).resolve()


def settle(was: Before, judged: Judged, run: Run) -> Settled:
    """Leave out what is accepted or has not changed, and judge the entries of the baseline and the budgets."""
    everything = [*judged.findings, *(one.finding for one in judged.suppressed)]
    sites: dict[str, Sequence[object]] = {"budget": list(_budget_checks(was, everything, run))}
    notes, baseline = [], None
    if was.baseline is not None:
        scene = _scene(was.baseline, run)
        compared = compare(was.baseline, judged.findings, _hidden(was.baseline, judged, scene, run.texts), scene)
        judged = _without_accepted(judged, compared)
        if was.update:
            baseline = updated(was.baseline, compared, scene, add=was.update == "write")
        else:
            sites["baseline-entry"] = list(_stale_entries(was, was.baseline, compared))
            if compared.moved:
                entries = counted(len(compared.moved), "entry", "entries")
                notes.append(f"{entries} of the baseline moved with their code: --prune-baseline writes it down")
    if run.program.touched is not None:
        judged = _touching(run.program.touched, judged)
    elif was.changed is not None:
        judged = _without_unchanged(was, judged)
    return Settled(_with_later(judged, sites, run), tuple(notes), baseline)


def accepted(was: Before, judged: Judged, run: Run) -> frozenset[Finding]:
    """The findings that the baseline accepts."""
    if was.baseline is None:
        return frozenset()
    scene = _scene(was.baseline, run)
    return frozenset(finding for finding, _ in compare(was.baseline, judged.findings, {}, scene).accepted)


def _scene(baseline: Baseline, run: Run) -> Scene:
    name, project, touched = baseline.naming(), run.program.project, run.program.touched

    @cache
    def scopes() -> frozenset[tuple[str, str]]:
        named = [(one.module.file.name, one.record.qualname) for one in project.functions]
        return frozenset((name(file), scope) for file, scope in named)

    return Scene(
        name,
        frozenset(map(name, run.files if touched is None else run.files & touched)),
        frozenset(rule.code for rule in run.rules),
        frozenset(rule.code for rule in all_rules()),
        lambda file: (baseline.path.parent / file).exists(),
        lambda file, scope: (file, scope) in scopes(),
    )


def _hidden(baseline: Baseline, judged: Judged, scene: Scene, texts: Texts) -> Mapping[Identity, int]:
    """How many findings there are, and not shown, of each identity that the baseline may accept."""
    asked = {entry.identity[:3] for entry in baseline.entries}
    found = (
        replace(one, snippet=identify(one, texts).snippet)
        for one in judged.unshown
        if (scene.name(one.filename), one.scope, one.code) in asked
    )
    return Counter(map(scene.identity, found))


def _without_accepted(judged: Judged, compared: Comparison) -> Judged:
    known = [Suppressed(finding, "baseline", entry.reason, owner=entry.owner) for finding, entry in compared.accepted]
    return replace(
        judged,
        findings=tuple(compared.new),
        suppressed=tuple(sorted((*judged.suppressed, *known), key=lambda one: one.finding.order)),
        hidden=replace(judged.hidden, baselined=len(known)),
    )


def _stale_entries(was: Before, baseline: Baseline, compared: Comparison) -> Iterable[StaleEntry]:
    here, folder = Path.cwd(), baseline.path.resolve().parent
    name = display(folder / baseline.path.name, here)
    for entry, there in compared.stale:
        source = Path(os.path.normpath(folder / entry.identity.file))
        if was.is_changed(str(source)):
            place = Span(entry.row, 1, entry.row, 1)
            yield StaleEntry(name, place, display(source, here), entry.name, entry.count, there)


def _budget_checks(was: Before, findings: Sequence[Finding], run: Run) -> Iterable[BudgetCheck]:
    if run.program.touched is not None:
        return  # a number about the whole project
    for check, files in check_budgets(run.program, run.settings.budgets, findings, run.root):
        if any(map(was.is_changed, (check.filename, *files))):
            yield check


def _touching(files: frozenset[str], judged: Judged) -> Judged:
    """Only what touches some files. What does not was not all judged, so it is not counted."""
    suppressed = tuple(one for one in judged.suppressed if touches(one.finding, files))
    return replace(
        judged,
        findings=tuple(one for one in judged.findings if touches(one, files)),
        suppressed=suppressed,
        hidden=replace(judged.hidden, baselined=sum(one.form == "baseline" for one in suppressed)),
    )


def _without_unchanged(was: Before, judged: Judged) -> Judged:
    """Without findings whose flow touches no changed file."""
    files = {hop.filename for one in judged.findings for hop in (*one.flow, *one.related)}
    changed = frozenset(filter(was.is_changed, files | {one.filename for one in judged.findings}))
    kept = tuple(one for one in judged.findings if touches(one, changed))
    return replace(judged, findings=kept, hidden=replace(judged.hidden, unchanged=len(judged.findings) - len(kept)))


def _with_later(judged: Judged, sites: Mapping[str, Sequence[object]], run: Run) -> Judged:
    """With the findings about what is known when all others are made."""
    asked = [rule for rule in run.rules if any(sites.get(kind) for kind in rule.sites)]
    if not asked:
        return judged
    later = judge(run.program, asked, run.settings, {}, (), (), run.texts, lambda kind: sites.get(kind, ()))
    return replace(
        judged,
        findings=tuple(sorted((*judged.findings, *later.findings), key=lambda one: one.order)),
        failures=(*judged.failures, *later.failures),
    )
