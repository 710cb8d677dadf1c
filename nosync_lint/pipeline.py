"""A run, stage by stage: discover -> index -> link -> judge -> report."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from nosync_lint.answers import CallTree, Explanation
from nosync_lint.config import ConfigError, Settings
from nosync_lint.discover import Discovered, discover
from nosync_lint.explain import Case
from nosync_lint.explain import explain as explain_line
from nosync_lint.finding import Applicability, Finding
from nosync_lint.fix import Fixing
from nosync_lint.fix.loop import Sources
from nosync_lint.fix.repair import repaired
from nosync_lint.fix.write import replace_content
from nosync_lint.graph import graph
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
from nosync_lint.registry import named, rules
from nosync_lint.report import Report
from nosync_lint.rule import BadFile, ConfiguredName, Rule
from nosync_lint.source import SourceFile, Span
from nosync_lint.target import target_releases

T = TypeVar("T")
Progress = Callable[[str, int, int], None]
"""Called with the stage, what is done of it, and how much there is."""


def _silent(stage: str, done: int, total: int) -> None:
    pass


def run(
    paths: Sequence[str],
    settings: Settings,
    *,
    jobs: int = 0,
    cache: bool = True,
    progress: Progress | None = None,
    fix: Fixing = Fixing.NOTHING,
) -> Report:
    """Lint the given files and folders, and as `fix` says fix them. Raises `MissingPath` and `ConfigError`; everything
    else is in the report."""
    start = time.perf_counter()
    return _asked(
        lambda linked: _run(linked, settings, start, fix, jobs or default_jobs(), progress or _silent),
        paths,
        settings,
        jobs or default_jobs(),
        cache,
        progress or _silent,
    )


def explain(
    paths: Sequence[str],
    settings: Settings,
    file: str,
    row: int,
    *,
    jobs: int = 0,
    cache: bool = True,
    progress: Progress | None = None,
) -> Explanation:
    """Why a row of a file is or is not reported. Raises `Unanswerable` for a file that is not linked."""
    return _asked(
        lambda linked: _explained(linked, settings, file, row),
        paths, settings, jobs or default_jobs(), cache, progress or _silent,
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
    return _asked(
        lambda linked: _call_tree(linked, settings, roots),
        paths, settings, jobs or default_jobs(), cache, progress or _silent,
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

    def with_contents(self, contents: Mapping[str, bytes], settings: Settings, jobs: int) -> Linked:
        """The same files, some with other contents."""
        files = self.found.files
        indexed = [
            index_one(contents[file.name], file.is_python) if file.name in contents else one
            for file, one in zip(files, self.indexed, strict=True)
        ]
        return replace(
            self, indexed=indexed, program=link(files, indexed, settings, self.targets, self.found.root, jobs)
        )

    @property
    def bad_files(self) -> list[BadFile]:
        return _bad_files(self.found.files, self.indexed)

    @property
    def unlisted(self) -> list[BadFile]:
        return [BadFile(name, why, Span(1, 1, 1, 1)) for name, why in self.found.unlisted]


def _asked(
    question: Callable[[Linked], T],
    paths: Sequence[str],
    settings: Settings,
    jobs: int,
    cache: bool,
    progress: Progress,
) -> T:
    """Link what the paths belong to and ask a question about it."""
    collecting = gc.isenabled()
    gc.disable()  # millions of small tuples that all live to the end
    try:
        return with_room(lambda: question(_linked(paths, settings, jobs, cache, progress)))
    finally:
        if collecting:
            gc.enable()


def _linked(paths: Sequence[str], settings: Settings, jobs: int, cache: bool, progress: Progress) -> Linked:
    found = discover(paths, settings.exclude, settings.extra_sources, settings.respect_gitignore, settings.path)
    try:
        targets = target_releases(settings.target_torch, found.root, known_releases())
    except ConfigError as error:
        source = f"{settings.path}: " if "target-torch" in dict(settings.rows) else ""
        raise ConfigError(f"{source}{error}") from error
    done = 0

    def advance(count: int) -> None:
        nonlocal done
        done += count
        progress("reading", done, len(found.files))

    indexed = index(
        found.files, IndexCache(cache_folder(settings) if cache else None), jobs, settings.max_file_size, advance
    )
    progress("linking", 0, 1)
    program = link(found.files, indexed, settings, targets, found.root, jobs)
    progress("judging", 0, 1)
    return Linked(found, indexed, targets, program)


def _run(
    linked: Linked,
    settings: Settings,
    start: float,
    fixing: Fixing = Fixing.NOTHING,
    jobs: int = 1,
    progress: Progress = _silent,
) -> Report:
    files, selected = linked.found.files, select(settings)
    names = _configured_names(settings, linked.program)
    told = any("bad-file" in rule.sites for rule in selected)
    texts = Texts()

    def ask(contents: Mapping[str, bytes]) -> Report:
        """What is found where some files hold something else."""
        progress("judging", 0, 1)
        now = linked.with_contents(contents, settings, jobs) if contents else linked
        lines = Texts(contents) if contents else texts
        judged = judge(
            now.program, selected, with_heat(settings, now.program), _pragmas(files, now.indexed),
            [*now.bad_files, *now.unlisted], names, lines,
        )  # fmt: skip
        notes = _notes(files, now.program, settings, 0 if told else len(now.bad_files))
        report = _report(files, now.program, judged, now.targets, lines, notes, time.perf_counter() - start)
        return replace(report, fixable=fixable_by(settings))

    report = ask({})
    if fixing is Fixing.NOTHING:
        return report
    facts = {file.name: one for file, one in zip(files, linked.indexed, strict=True) if file.is_python}
    sources = Sources(
        lambda name: data if (data := texts.data(name)) is not None and index_one(data, True) == facts[name] else None,
        lambda data: not isinstance(index_one(data, True), Unreadable),
    )
    paths = {file.name: file.path for file in files}
    write = (lambda name, old, new: replace_content(paths[name], old, new)) if fixing is Fixing.WRITE else None
    return repaired(report, ask, sources, write)


def fixable_by(settings: Settings) -> Callable[[Finding], bool]:
    """Which findings `--fix` would fix: those with a safe fix, or as the settings have it an unsafe one."""
    allowed = {Applicability.SAFE, Applicability.UNSAFE} if settings.unsafe_fixes else {Applicability.SAFE}

    def listed(finding: Finding, words: Sequence[str]) -> bool:
        return any(word == finding.name or finding.code.startswith(word.upper()) for word in words)

    return lambda finding: (
        finding.fix is not None
        and finding.fix.applicability in allowed
        and (not settings.fixable or listed(finding, settings.fixable))
        and not listed(finding, settings.unfixable)
    )


def _explained(linked: Linked, settings: Settings, file: str, row: int) -> Explanation:
    path = Path(file).resolve()
    source = next((one for one in linked.found.files if one.path == path), None)
    program = linked.program
    names = _configured_names(settings, program)
    is_config = settings.path is not None and settings.path.resolve() == path
    if source is None and not is_config:
        raise Unanswerable(_not_linked(linked, file, path))
    texts = Texts()
    name = source.name if source is not None else _config_name(settings)
    lines = texts.lines(name)
    if lines and row > (last := max(len(lines) - (not lines[-1]), 1)):
        raise Unanswerable(f"{file} has {last} lines, so there is no line {row} to explain")
    case = Case(
        program,
        select(settings),
        with_heat(settings, program),
        _pragmas(linked.found.files, linked.indexed),
        linked.bad_files,
        names,
        texts,
    )
    return explain_line(case, name, row, source is None or source.reported)


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
    files, program = linked.found.files, linked.program
    texts = Texts()
    selected = select(settings)
    judged = judge(program, selected, replace(settings, heat="hot"), _pragmas(files, linked.indexed), (), (), texts)
    try:
        tree = graph(program, selected, judged.findings, texts, roots)
    except UnknownRoot as error:
        raise Unanswerable(str(error)) from error
    given = set(settings.hot) - set(settings.configured_hot)
    notes = [f"--hot {name} names no function of this project" for name in program.unmatched_roots if name in given]
    if not program.has_roots:
        notes.append("no hot root matches anything here: name one with --hot or `hot = [...]`")
    return replace(tree, notes=(*tree.notes, *notes, *(f"failed: {one}" for one in judged.failures)))


def link(
    files: Sequence[SourceFile],
    indexed: Sequence[Indexed],
    settings: Settings,
    targets: Sequence[str],
    root: Path | None = None,
    jobs: int = 1,
) -> Program:
    """The program that the indexed files make."""
    return Program(
        [(file, one) for file, one in zip(files, indexed, strict=True) if isinstance(one, ModuleIndex)],
        [(file, one) for file, one in zip(files, indexed, strict=True) if isinstance(one, CudaIndex)],
        settings.hot,
        settings.cold,
        targets,
        [Contract(one.base, one.method, one.argument) for one in settings.contract],
        [
            Census("census", _config_name(settings), Span(one.row, 1, one.row, 1), one.files, one.matches, one.where)
            for one in settings.census
        ],
        root,
        settings.capture,
        jobs,
        Told(settings.waits, settings.cures, settings.returns_device, settings.returns_host, settings.waivers),
    )


def select(settings: Settings) -> list[Rule]:
    """The rules that a run asks: by code, the start of a code, or slug. Files that cannot be read are always told."""
    return [
        rule
        for rule in rules()
        if (
            any(named(rule, word) for word in settings.select)
            or "bad-file" in rule.sites
            or (rule.default and not settings.select)
        )
        and not any(named(rule, word) for word in settings.ignore)
    ]


def with_heat(settings: Settings, program: Program) -> Settings:
    """The settings, with every heat shown where the program has no hot root: an empty report would look clean."""
    return settings if settings.heat == "any" or program.has_roots else replace(settings, heat="any")


def _notes(files: Sequence[SourceFile], program: Program, settings: Settings, untold: int) -> tuple[str, ...]:
    """What a reader must know so as not to take an empty report for a clean one."""
    notes = []
    if not any(file.reported for file in files):
        notes.append("no Python or CUDA file was found there: check the path, `exclude` and what git ignores")
    elif not program.has_roots and any(file.is_python for file in files):
        notes.append(
            "no hot root matches anything here: findings of every heat are shown; name one with --hot or `hot = [...]`"
        )
    given = set(settings.hot) - set(settings.configured_hot)
    notes += [f"--hot {name} names no function of this project" for name in program.unmatched_roots if name in given]
    frozen = len(program.inference.solver.frozen)
    if frozen:
        notes.append(f"{frozen} values in cycles of calls kept changing and were taken as they stood")
    if untold:
        notes.append(f"{untold} files could not be read; NSL000, which names them, is not selected")
    return tuple(notes)


def _report(
    files: Sequence[SourceFile],
    program: Program,
    judged: Judged,
    targets: tuple[str, ...],
    texts: Texts,
    notes: tuple[str, ...],
    seconds: float,
) -> Report:
    shown = [*judged.findings, *(one.finding for one in judged.suppressed)]
    names = {finding.filename for finding in shown}
    resolved, unresolved = program.call_counts
    return Report(
        findings=judged.findings,
        hidden=judged.hidden,
        files_reported=sum(file.reported for file in files),
        files_linked=len(files),
        calls_resolved=resolved,
        calls_unresolved=unresolved,
        target_torch=targets,
        seconds=seconds,
        failures=judged.failures,
        notes=notes,
        program=program,
        sources={name: tuple(texts.lines(name)) for name in sorted(names)},
        suppressed=judged.suppressed,
    )


def _pragmas(files: Sequence[SourceFile], indexed: Sequence[Indexed]) -> dict[str, Sequence[Pragma]]:
    return {
        file.name: one.pragmas
        for file, one in zip(files, indexed, strict=True)
        if file.reported and not isinstance(one, Unreadable) and one.pragmas
    }


def _bad_files(files: Sequence[SourceFile], indexed: Sequence[Indexed]) -> list[BadFile]:
    return [
        BadFile(file.name, one.reason, Span(one.row, 1, one.row, 1))
        for file, one in zip(files, indexed, strict=True)
        if file.reported and isinstance(one, Unreadable)
    ]


def _configured_names(settings: Settings, program: Program) -> list[ConfiguredName]:
    if settings.path is None:
        return []
    config = _config_name(settings)
    unmatched, captured = set(program.unmatched_roots), program.capture.unmatched()
    untold = set(program.roots.told.unmatched())
    names = [
        ConfiguredName(config, Span(row, 1, row, 1), kind, name, "correct the name or remove it", name not in missing)
        for kind, listed, row, missing in (
            ("hot root", settings.configured_hot, settings.row("hot"), unmatched),
            ("cold stop", settings.cold, settings.row("cold"), unmatched),
            ("capture function", settings.capture, settings.row("capture"), captured),
            ("function that waits", settings.waits, settings.row("waits"), untold),
            ("function that cures", settings.cures, settings.row("cures"), untold),
            ("function", settings.returns_device, settings.row("returns-device"), untold),
            ("function", settings.returns_host, settings.row("returns-host"), untold),
        )
        for name in listed
    ]
    row = settings.row("extra-sources")
    names += [
        ConfiguredName(
            config,
            Span(row, 1, row, 1),
            "path",
            name,
            "correct the path or remove it",
            (settings.path.parent / name).exists(),
        )
        for name in settings.extra_sources
    ]
    names += [
        ConfiguredName(
            config, Span(one.row, 1, one.row, 1), "contract", f"{one.base}.{one.method}({one.argument})",
            "correct the names or remove the contract", program.keeps(Contract(one.base, one.method, one.argument)),
        )
        for one in settings.contract
    ]  # fmt: skip
    return names


def _config_name(settings: Settings) -> str:
    if settings.path is None:
        return ""
    try:
        return settings.path.relative_to(Path.cwd()).as_posix()
    except ValueError:
        return settings.path.as_posix()


def cache_folder(settings: Settings) -> Path:
    """Where the index cache lives: beside the configuration, unless it is given from elsewhere."""
    folder = Path(settings.cache_dir)
    return folder if folder.is_absolute() or settings.path is None else settings.path.parent / folder
