"""What a change touches: the findings that stand in a changed file or whose story leads through one."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

from nosync_lint.finding import Finding
from nosync_lint.source import SourceFile


def touches(finding: Finding, files: Collection[str]) -> bool:
    """Whether a finding, a hop of its flow, or a line that it is related to is in one of these files, by their names.

    The fix of a finding is in its own file. Its evidence is not asked: where values come from is known only once
    everything is judged, which is what a run over the whole project does.
    """
    return finding.filename in files or any(hop.filename in files for hop in (*finding.flow, *finding.related))


def touched(files: Iterable[SourceFile], paths: Iterable[str]) -> frozenset[str]:
    """The names of the files that given paths stand for: files, and what lies in folders."""
    given = {Path(path).resolve() for path in paths}
    return frozenset(file.name for file in files if file.path in given or not given.isdisjoint(file.path.parents))
