"""A run, stage by stage: discover -> index -> link -> judge -> report."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from nosync_lint.answers import CallTree, Explanation
from nosync_lint.config import ConfigError, Settings
from nosync_lint.configured_names import configured_names, file_name
from nosync_lint.cures import cured
from nosync_lint.discover import Discovered, discover
from nosync_lint.explain import Case
from nosync_lint.explain import explain as explain_line
from nosync_lint.finding import Confidence, Severity
from nosync_lint.fix import Fixing
from nosync_lint.fix.loop import Sources
from nosync_lint.fix.repair import repaired
from nosync_lint.fix.wanted import fixable_by
from nosync_lint.fix.write import replace_content
from nosync_lint.graph import graph
from nosync_lint.in_cells import Cells
from nosync_lint.index import Indexed, default_jobs, index, index_one
from nosync_lint.index.cache import IndexCache
from nosync_lint.index.cuda_records import CudaIndex
from nosync_lint.index.records import ModuleIndex, Pragma, Unreadable
from nosync_lint.judge import Judged, Texts, judge
from nosync_lint.link.call_tree import UnknownRoot
from nosync_lint.link.configured import Told
from nosync_lint.link.contracts import Contract
from nosync_lint.link.kernels import Census
from nosync_lint.link.program import Program
from nosync_lint.link.semantics import known_releases
from nosync_lint.link.solver import with_room
from nosync_lint.notes import note_on_notebooks, note_on_unreached, notes_on_run, notes_on_settings
from nosync_lint.owners import owners
from nosync_lint.plural import counted
from nosync_lint.ratchet import Before, Run, accepted, before, settle
from nosync_lint.registry import facts
from nosync_lint.report import Report
from nosync_lint.rule import BadFile, Rule
from nosync_lint.selection import select
from nosync_lint.source import SourceFile, Span
from nosync_lint.suppression import comments_of
from nosync_lint.target import target_releases
from nosync_lint.touching import touched

T = TypeVar("T")
Progress = Callable[[str, int, int], None]
"""Called with the stage, what is done of it, and how much there is."""
Overlay = Mapping[Path, bytes]
"""What stands for files on disk, by their resolved paths: standard input, or the open buffers of an editor."""


def _silent(stage: str, done: int, total: int) -> None:
    pass


def run(
    paths: Sequence[str],
    settings: Settings,
    *,
    jobs: int = 0,
    cache: bool = True,
    progress: Progress | None = None,
    overlay: Overlay | None = None,
    touching: Sequence[str] | None = None,
    since: str = "",
    update: str = "",
    selected: Sequence[Rule] | None = None,
    fix: Fixing = Fixing.NOTHING,
) -> Report:
    """Lint the given files and folders, with the selected rules or those that the settings select, and as `fix` says
    fix them. Raises `MissingPath` and `ConfigError`; everything else is in the report.

    With `touching` only findings are reported that stand in one of these files or folders, or lead through one.
    `since` is a git revision: what touches no file that changed is left out. `update` is "write" or "prune": the report
    has the baseline that is to be written, and this writes nothing. `selected` are the rules to ask, by default those
    that the settings select.
    """
    start = time.perf_counter()
    was = before(settings, paths, since, update)
    return ask(
        lambda linked: fixed_report(linked, settings, selected, was, start, fix),
        paths, settings, jobs=jobs, cache=cache, progress=progress, overlay=overlay, touching=touching,
    )  # fmt: skip


def explain(
    paths: Sequence[str],
    settings: Settings,
    file: str,
    row: int,
    *,
    cell: int | None = None,
    jobs: int = 0,
    cache: bool = True,
    progress: Progress | None = None,
    overlay: Overlay | None = None,
) -> Explanation:
    """Why a row of a file, or of a cell of a notebook, is or is not reported. Raises `Unanswerable` for what is not
    linked."""
    return ask(
        lambda linked: explanation_of(linked, settings, file, row, cell),
        paths, settings, jobs=jobs, cache=cache, progress=progress, overlay=overlay,
    )  # fmt: skip


def call_tree(
    paths: Sequence[str],
    settings: Settings,
    roots: Sequence[str] = (),
    *,
    jobs: int = 0,
    cache: bool = True,
    progress: Progress | None = None,
) -> CallTree:
    """The calls from hot roots to findings under the given paths. Raises `Unanswerable` for a name of no hot root."""
    return ask(
        lambda linked: _call_tree(linked, settings, roots),
        paths, settings, jobs=jobs, cache=cache, progress=progress,
    )  # fmt: skip


class Unanswerable(Exception):
    """A question about something that the linked program does not have."""


@dataclass(frozen=True, slots=True)
class Linked:
    """What the stages before `judge` give."""

    found: Discovered
    indexed: Sequence[Indexed]
    targets: tuple[str, ...]
    program: Program
    target_note: str = ""
    """What a reader must know of the releases that are judged for."""

    def with_contents(self, contents: Mapping[str, bytes], settings: Settings) -> Linked:
        """The same files, some with other contents."""
        files = [replace(file, content=contents.get(file.name, file.content)) for file in self.found.files]
        indexed = [
            index_one(contents[file.name], file.is_python) if file.name in contents else one
            for file, one in zip(files, self.indexed, strict=True)
        ]
        changed = self.program.touched
        program = link(files, indexed, settings, self.targets, self.found.root, default_jobs(), changed)
        return replace(self, found=replace(self.found, files=tuple(files)), indexed=indexed, program=program)

    @property
    def bad_files(self) -> list[BadFile]:
        return _bad_files(self.found.files, self.indexed)

    @property
    def cells(self) -> Cells:
        """Where the cells of the notebooks are."""
        pairs = zip(self.found.files, self.indexed, strict=True)
        return Cells({file.name: one.cells for file, one in pairs if isinstance(one, ModuleIndex)})

    @property
    def read(self) -> frozenset[str]:
        """The names of the reported files that could be read."""
        pairs = zip(self.found.files, self.indexed, strict=True)
        return frozenset(file.name for file, one in pairs if file.reported and not isinstance(one, Unreadable))

    def pragmas(self, settings: Settings, texts: Texts) -> Mapping[str, Sequence[Pragma]]:
        """The comments in the reported files that are addressed to us, or to tools whose comments are honoured."""
        words, blanket = settings.waivers, settings.respect_blanket_noqa
        return comments_of(self.found.files, self.indexed, texts.lines, words, blanket)

    @property
    def unlisted(self) -> list[BadFile]:
        return [BadFile(name, why, Span(1, 1, 1, 1)) for name, why in self.found.unlisted]


def ask(
    question: Callable[[Linked], T],
    paths: Sequence[str],
    settings: Settings,
    *,
    jobs: int = 0,
    cache: bool = True,
    progress: Progress | None = None,
    overlay: Overlay | None = None,
    touching: Sequence[str] | None = None,
) -> T:
    """Link what the paths belong to and ask a question about it."""
    collecting = gc.isenabled()
    gc.disable()  # millions of small tuples that all live to the end
    reported = progress or _silent
    try:
        return with_room(
            lambda: question(_linked(paths, settings, jobs or default_jobs(), cache, reported, overlay or {}, touching))
        )
    finally:
        if collecting:
            gc.enable()


def found_files(paths: Sequence[str], settings: Settings, overlay: Overlay | None = None) -> Discovered:
    """The files that a run links, each marked as reported or not. Raises `MissingPath`."""
    exclude = (*settings.exclude, *settings.extend_exclude)
    return discover(paths, exclude, settings.extra_sources, settings.respect_gitignore, settings.path, overlay)


def _linked(
    paths: Sequence[str],
    settings: Settings,
    jobs: int,
    cache: bool,
    progress: Progress,
    overlay: Overlay,
    touching: Sequence[str] | None,
) -> Linked:
    found = found_files(paths, settings, overlay)
    changed = None if touching is None else touched(found.files, touching)
    if changed is not None and not changed:
        found = replace(found, files=())  # nothing could be reported
    elif changed is not None and changed.issuperset(file.name for file in found.files if file.reported):
        changed = None  # everything is asked for
    try:
        target = target_releases(settings.target_torch, found.root, known_releases())
    except ConfigError as error:
        raise ConfigError(f"{settings.place('target-torch')}{error}") from error
    done = 0

    def advance(count: int) -> None:
        nonlocal done
        done += count
        progress("reading", done, len(found.files))

    indexed = index(
        found.files, IndexCache(cache_folder(settings) if cache else None), jobs, settings.max_file_size, advance
    )
    progress("linking", 0, 1)
    program = link(found.files, indexed, settings, target.releases, found.root, jobs, changed)
    progress("judging", 0, 1)
    return Linked(found, indexed, target.releases, program, target.note)


def report_of(
    linked: Linked,
    settings: Settings,
    selected: Sequence[Rule] | None,
    was: Before,
    start: float,
    texts: Texts | None = None,
) -> Report:
    """What the selected rules, or those that the settings select, say of the reported files, held against what was."""
    files, program = linked.found.files, linked.program
    selected = select(settings) if selected is None else selected
    texts = texts or Texts(files)
    pragmas = linked.pragmas(settings, texts)
    judged = judge(
        program,
        selected,
        with_heat(settings, program),
        pragmas,
        [*linked.bad_files, *linked.unlisted],
        configured_names(settings, program),
        texts,
    )
    if program.touched is not None:
        was = replace(was, changed=frozenset(map(os.path.realpath, program.touched)))
    settled = settle(was, judged, Run(program, selected, settings, texts, linked.read, linked.found.root))
    told = any("bad-file" in rule.sites for rule in selected)
    notes = notes_on_run(files, program, settings, 0 if told else len(linked.bad_files))
    hidden_away = note_on_unreached(program, judged.unshown, selected, settings)
    comments = [pragma for found in pragmas.values() for pragma in found]
    notes = (
        *notes,
        *filter(None, [linked.target_note]),
        *settled.notes,
        *hidden_away,
        *notes_on_settings(files, settings, linked.found.root, comments),
    )
    report = _report(linked, settled.judged, texts, notes, time.perf_counter() - start, Severity(settings.fail_on))
    fixable, cells = fixable_by(settings), linked.cells
    report = replace(
        report,
        rules=tuple(facts(rule) for rule in selected),
        hidden=replace(report.hidden, cured=cured(program, selected, Confidence(settings.min_confidence))),
        baseline=settled.baseline,
        fixable=fixable,
        in_notebooks=sum(bool(cells.numbers(one.filename)) and fixable(one) for one in settled.judged.findings),
    )
    return _with_owners(report, files, linked.found.root)


def fixed_report(
    linked: Linked, settings: Settings, selected: Sequence[Rule] | None, was: Before, start: float, fix: Fixing
) -> Report:
    """What the rules say once the fixes are made that are wanted."""
    files = linked.found.files
    texts = Texts(files)
    report = report_of(linked, settings, selected, was, start, texts)
    if fix is Fixing.NOTHING:
        return report
    facts = {file.name: one for file, one in zip(files, linked.indexed, strict=True) if file.is_python}
    sources = Sources(
        lambda name: data if (data := texts.data(name)) is not None and index_one(data, True) == facts[name] else None,
        lambda data: not isinstance(index_one(data, True), Unreadable),
    )
    paths = {file.name: file.path for file in files}
    write = (lambda name, old, new: replace_content(paths[name], old, new)) if fix is Fixing.WRITE else None

    def asked(contents: Mapping[str, bytes]) -> Report:
        judged = report_of(linked.with_contents(contents, settings), settings, selected, was, start)
        gc.collect()  # the program of a round takes as much room as that of the run, and refers to itself
        return judged

    gc.freeze()  # what was linked stays, and need not be looked through
    try:
        report = repaired(report, asked, sources, write)
    finally:
        gc.unfreeze()
    return replace(report, notes=(*report.notes, *note_on_notebooks(report)))


def _with_owners(report: Report, files: Sequence[SourceFile], root: Path) -> Report:
    """A report that knows who owns the files it names."""
    named = {one.filename for one in (*report.findings, *(accepted.finding for accepted in report.suppressed))}
    owned = owners(root, (file for file in files if file.name in named))
    notes = (f"nobody is known to own anything: {owned.trouble}",) if owned.trouble else ()
    return replace(report, owners=owned.by_name, notes=(*report.notes, *notes))


def explanation_of(linked: Linked, settings: Settings, file: str, row: int, cell: int | None = None) -> Explanation:
    """Why a row of a file is or is not reported. Raises `Unanswerable` for a file that is not linked."""
    path = Path(file).resolve()
    source = next((one for one in linked.found.files if one.path == path), None)
    program = linked.program
    names = configured_names(settings, program)
    is_config = settings.path is not None and settings.path.resolve() == path
    if source is None and not is_config:
        raise Unanswerable(_not_linked(linked, file, path))
    texts = Texts(linked.found.files)
    name = source.name if source is not None else file_name(settings.path)
    cells = linked.cells
    if cell is not None or cells.numbers(name):
        row = _row_of_cell(cells, name, cell, row)
    lines = texts.lines(name)
    if lines and row > (last := max(len(lines) - (not lines[-1]), 1)):
        raise Unanswerable(f"{file} has {counted(last, 'line')}, so there is no line {row} to explain")
    selected = select(settings)
    was = before(settings, (), "", "")
    compared = Run(program, selected, settings, texts, linked.read, linked.found.root)
    case = Case(
        program,
        selected,
        with_heat(settings, program),
        linked.pragmas(settings, texts),
        linked.bad_files,
        names,
        texts,
        lambda judged: accepted(was, judged, compared),
    )
    return cells.answer(explain_line(case, name, row, source is None or source.reported))


def _row_of_cell(cells: Cells, name: str, cell: int | None, row: int) -> int:
    """The row of the joined code of a notebook that is meant."""
    numbers = cells.numbers(name)
    if not numbers:
        raise Unanswerable(f"{name}: has no code cells; name a row of the file: {name}:{row}")
    found = cells.row(name, cell, row) if cell is not None else None
    if found is None:
        known = f"cell {numbers[0]}" if len(numbers) == 1 else f"cells {', '.join(str(number) for number in numbers)}"
        raise Unanswerable(f"{name}: name a row of one of its code {known}, such as {name}:cell {numbers[0]}:1")
    return found


def _not_linked(linked: Linked, file: str, path: Path) -> str:
    """Why a file cannot be explained, and what could be meant."""
    if not path.is_file():
        import difflib

        near = difflib.get_close_matches(file, [one.name for one in linked.found.files], 1, 0.6)
        return f"{file}: no such file" + (f", did you mean {near[0]}?" if near else "")
    return (
        f"{file}: is not linked: it lies outside {_shown_folder(linked.found.root)}, or is excluded or ignored by git; "
        "name its project as PATH, or add it with `extra-sources`"
    )


def _shown_folder(folder: Path) -> str:
    return "the working directory" if folder == Path.cwd() else f"{folder}"


def _call_tree(linked: Linked, settings: Settings, roots: Sequence[str]) -> CallTree:
    program = linked.program
    texts = Texts(linked.found.files)
    selected = select(settings)
    pragmas = linked.pragmas(settings, texts)
    judged = judge(program, selected, replace(settings, heat="hot"), pragmas, (), (), texts)
    try:
        tree = graph(program, selected, judged.findings, texts, roots)
    except UnknownRoot as error:
        raise Unanswerable(str(error)) from error
    given = set(settings.hot) - set(settings.configured_hot)
    notes = [f"--hot {name} names no function of this project" for name in program.unmatched_roots if name in given]
    if not program.has_roots:
        notes.append("no hot root matches anything here: name one with --hot or `hot = [...]`")
    return replace(
        linked.cells.answer(tree), notes=(*tree.notes, *notes, *(f"failed: {one}" for one in judged.failures))
    )


def link(
    files: Sequence[SourceFile],
    indexed: Sequence[Indexed],
    settings: Settings,
    targets: Sequence[str],
    root: Path | None = None,
    jobs: int = 1,
    touched: frozenset[str] | None = None,
) -> Program:
    """The program that the indexed files make."""
    return Program(
        [(file, one) for file, one in zip(files, indexed, strict=True) if isinstance(one, ModuleIndex)],
        [(file, one) for file, one in zip(files, indexed, strict=True) if isinstance(one, CudaIndex)],
        (*settings.hot, *(budget.root for budget in settings.budgets)),
        settings.cold,
        targets,
        [Contract(one.base, one.method, one.argument) for one in settings.contract],
        [
            Census("census", file_name(one.file), Span(one.row, 1, one.row, 1), one.files, one.matches, one.where)
            for one in settings.census
        ],
        root,
        settings.capture,
        jobs,
        Told(
            settings.waits,
            settings.cures,
            settings.returns_device,
            settings.returns_host,
            settings.waivers,
            settings.presets,
        ),
        touched,
    )


def with_heat(settings: Settings, program: Program) -> Settings:
    """The settings, with every heat shown where the program has no hot root: an empty report would look clean."""
    return settings if settings.heat == "any" or program.has_roots else replace(settings, heat="any")


def _report(
    linked: Linked, judged: Judged, texts: Texts, notes: tuple[str, ...], seconds: float, fail_on: Severity
) -> Report:
    files, cells = linked.found.files, linked.cells
    shown = [*judged.findings, *(one.finding for one in judged.suppressed)]
    hops = (hop for finding in shown for hop in finding.flow)
    names = {finding.filename for finding in shown} | {hop.filename for hop in hops}
    resolved, unresolved = linked.program.call_counts
    changed = linked.program.touched
    return Report(
        findings=tuple(cells.finding(one) for one in judged.findings),
        hidden=judged.hidden,
        files_reported=sum(file.reported for file in files) if changed is None else len(changed),
        files_linked=len(files),
        calls_resolved=resolved,
        calls_unresolved=unresolved,
        target_torch=linked.targets,
        seconds=seconds,
        failures=judged.failures,
        notes=notes,
        program=linked.program,
        sources=cells.sources({name: tuple(texts.lines(name)) for name in sorted(names)}),
        suppressed=tuple(cells.suppressed(one) for one in judged.suppressed),
        fail_on=fail_on,
    )


def _bad_files(files: Sequence[SourceFile], indexed: Sequence[Indexed]) -> list[BadFile]:
    return [
        BadFile(file.name, problem.reason, Span(problem.row, 1, problem.row, 1))
        for file, one in zip(files, indexed, strict=True)
        if file.reported
        for problem in ([one] if isinstance(one, Unreadable) else one.unread if isinstance(one, ModuleIndex) else [])
    ]


def cache_folder(settings: Settings) -> Path:
    """Where the index cache lives: beside the configuration, unless it is given from elsewhere."""
    folder = Path(settings.cache_dir)
    return folder if folder.is_absolute() or settings.path is None else settings.path.parent / folder
