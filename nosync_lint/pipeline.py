"""A run, stage by stage: discover -> index -> link -> judge -> report."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from nosync_lint.config import ConfigError, Settings
from nosync_lint.discover import discover
from nosync_lint.index import Indexed, default_jobs, index
from nosync_lint.index.cache import IndexCache
from nosync_lint.index.cuda_records import CudaIndex
from nosync_lint.index.records import ModuleIndex, Pragma, Unreadable
from nosync_lint.judge import Judged, Texts, judge
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

Progress = Callable[[str, int, int], None]
"""Called with the stage, what is done of it, and how much there is."""


def run(
    paths: Sequence[str],
    settings: Settings,
    *,
    jobs: int = 0,
    cache: bool = True,
    progress: Progress | None = None,
) -> Report:
    """Lint the given files and folders. Raises `MissingPath` and `ConfigError`; everything else is in the report."""
    start = time.perf_counter()
    collecting = gc.isenabled()
    gc.disable()  # millions of small tuples that all live to the end
    try:
        return with_room(lambda: _run(paths, settings, jobs or default_jobs(), cache, progress or _silent, start))
    finally:
        if collecting:
            gc.enable()


def _run(paths: Sequence[str], settings: Settings, jobs: int, cache: bool, progress: Progress, start: float) -> Report:
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
    program = link(found.files, indexed, settings, targets, found.root)
    progress("judging", 0, 1)
    selected = select(settings)
    bad_files = _bad_files(found.files, indexed)
    texts = Texts()
    judged = judge(
        program,
        selected,
        with_heat(settings, program),
        _pragmas(found.files, indexed),
        [*bad_files, *(BadFile(name, why, Span(1, 1, 1, 1)) for name, why in found.unlisted)],
        _configured_names(settings, program),
        texts,
    )
    told = any("bad-file" in rule.sites for rule in selected)
    notes = _notes(found.files, program, settings, 0 if told else len(bad_files))
    return _report(found.files, program, judged, targets, texts, notes, time.perf_counter() - start)


def link(
    files: Sequence[SourceFile],
    indexed: Sequence[Indexed],
    settings: Settings,
    targets: Sequence[str],
    root: Path | None = None,
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
    )


def select(settings: Settings) -> list[Rule]:
    """The rules that a run asks: by code, the start of a code, or slug. Files that cannot be read are always told."""
    return [
        rule
        for rule in rules()
        if (not settings.select or "bad-file" in rule.sites or any(named(rule, word) for word in settings.select))
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
    names = {f.filename for f in judged.findings}
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
    unmatched = set(program.unmatched_roots)
    names = [
        ConfiguredName(config, Span(row, 1, row, 1), kind, name, "correct the name or remove it", name not in unmatched)
        for kind, listed, row in (
            ("hot root", settings.configured_hot, settings.row("hot")),
            ("cold stop", settings.cold, settings.row("cold")),
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


def _silent(stage: str, done: int, total: int) -> None:
    pass
