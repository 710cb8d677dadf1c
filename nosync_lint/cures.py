"""What `cures = [...]` keeps quiet: counted, so that a report does not look cleaner than the project is."""

from __future__ import annotations

from collections.abc import Iterable

from nosync_lint.finding import Confidence
from nosync_lint.link.program import Program
from nosync_lint.rule import Rule


def cured(program: Program, rules: Iterable[Rule], least: Confidence) -> int:
    """How many findings of these rules there would be in the functions that are given as cures."""
    cures, touched = program.roots.told.cures, program.touched
    if not cures:
        return 0
    by_slug = {rule.slug(): rule for rule in rules if rule.heated}
    found = (
        (by_slug[sync.verdict.rule], sync)
        for function in program.project.reported
        if cures.match(function) and (touched is None or function.module.file.name in touched)
        for sync in program.judged.of(function)
        if sync.verdict.synchronises and sync.verdict.rule in by_slug
    )
    return sum(one.confidence.rank >= least.rank for rule, sync in found for one in rule.judge(sync, program))
