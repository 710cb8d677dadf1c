"""What a reader is told besides findings: what an empty report must not be taken for, what the settings leave out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from nosync_lint.config import FILES, Settings, display, is_config
from nosync_lint.finding import Confidence, Finding, Heat
from nosync_lint.index.records import Pragma
from nosync_lint.link.program import Program
from nosync_lint.link.project import Function
from nosync_lint.plural import counted
from nosync_lint.report import Report
from nosync_lint.ruff_settings import EXTERNAL, ruff_settings
from nosync_lint.rule import Rule
from nosync_lint.selection import FileIgnores, told_names
from nosync_lint.source import SourceFile
from nosync_lint.touching import touches

SHOWN = 3
"""Files or functions that a note names."""
LOOKED_AT = 50
"""Functions of which it is asked whether something calls them: those that hold the most findings."""


def notes_on_run(files: Sequence[SourceFile], program: Program, settings: Settings, untold: int) -> tuple[str, ...]:
    """What a reader must know so as not to take an empty report for a clean one."""
    notes = []
    if program.touched is not None and not program.touched:
        notes.append("no changed file was given that is part of what is read: nothing to report")
    elif not any(file.reported for file in files):
        notes.append("no Python or CUDA file was found there: check the path, `exclude` and what git ignores")
    elif not program.has_roots and any(file.is_python for file in files):
        notes.append(
            "no hot root matches anything here: findings of every heat are shown; name one with --hot or `hot = [...]`"
        )
    given = set(settings.hot) - set(settings.configured_hot)
    notes += [f"--hot {name} names no function of this project" for name in program.unmatched_roots if name in given]
    frozen = len(program.inference.solver.frozen)
    if frozen:
        notes.append(f"{counted(frozen, 'value')} in cycles of calls kept changing: what was known last is taken")
    notes += told_names(settings)
    if untold:
        notes.append(f"{counted(untold, 'file')} could not be read; NSL000, which tells why, is not selected")
    return tuple(notes)


def note_on_unreached(
    program: Program, unshown: Iterable[Finding], rules: Iterable[Rule], settings: Settings
) -> Iterator[str]:
    """Functions that hold hidden findings and that nothing calls: a training loop is often one of them."""
    if settings.heat == "any" or not program.has_roots:
        return
    by_code, ignores = {rule.code: rule for rule in rules}, FileIgnores(settings)
    least, touched = Confidence(settings.min_confidence).rank, program.touched
    holding = Counter(
        (one.filename, one.scope)
        for one in unshown
        if one.heat is Heat.UNREACHED
        and one.confidence.rank >= least
        and not ignores.cover(by_code[one.code], one.filename)
        and (touched is None or touches(one, touched))
    )
    if not holding:
        return
    by_place = {(one.module.file.name, one.record.qualname): one for one in program.project.functions}
    asked = (by_place[place] for place, _ in holding.most_common(LOOKED_AT) if place in by_place)
    names = [one.record.qualname for one in islice(filter(lambda one: _is_uncalled(one, program), asked), SHOWN)]
    if names:
        told = " and ".join(filter(None, (", ".join(f"`{name}`" for name in names[:-1]), f"`{names[-1]}`")))
        yield (
            f"findings are hidden in {told}, of which no caller is known that runs often: if one runs in every step, "
            f"say so with --hot {names[0]} or `# nosync-lint: hot`"
        )


def note_on_notebooks(report: Report) -> Iterator[str]:
    """Why a run with `--fix` leaves findings that have a fix."""
    if report.in_notebooks:
        findings = counted(report.in_notebooks, "finding")
        yield f"{findings} in notebooks could be fixed: fixes leave notebooks alone, change the cells by hand"


def _is_uncalled(function: Function, program: Program) -> bool:
    """Whether nothing calls a function, besides what runs rarely, such as the body of a module."""
    callers = program.inference.callers(function)
    return function.record.form == "function" and all(program.roots.is_cold(one.caller) for one in callers)


def notes_on_settings(
    files: Sequence[SourceFile], settings: Settings, root: Path, pragmas: Iterable[Pragma]
) -> Iterator[str]:
    """Configurations further down, which are not read, and settings of ruff that take our comments away."""
    below = sorted(_below(files, settings.path, root)) if settings.nearest else []
    if below:
        shown = ", ".join(display(path, Path.cwd()) for path in below[:SHOWN])
        more = f" and {len(below) - SHOWN} more" if len(below) > SHOWN else ""
        ruling = display(settings.path, Path.cwd()) if settings.path is not None else "the defaults"
        yield f"one configuration governs a run, here {ruling}; not read: {shown}{more} (check those folders apart)"
    if any(pragma.form == "noqa" for pragma in pragmas):
        ruff = ruff_settings(root)
        if ruff is not None and ruff.removes:
            where = f"under {ruff.table} in {display(ruff.path, Path.cwd())}"
            yield f"ruff takes `# noqa: NSL...` comments away (RUF102): add `{EXTERNAL}` {where}"


def _below(files: Sequence[SourceFile], governing: Path | None, root: Path) -> set[Path]:
    """The configuration files between the root of the project and its reported files."""
    folders: set[Path] = set()
    for file in files:
        folder = file.path.parent
        while file.reported and folder not in folders and root in folder.parents:
            folders.add(folder)
            folder = folder.parent
    return {folder / name for folder in folders for name in FILES if is_config(folder / name)} - {governing}
