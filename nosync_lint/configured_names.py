"""The names and paths that a configuration lists, as sites of the rule that tells which of them name nothing."""

from __future__ import annotations

from pathlib import Path

from nosync_lint.config import Settings, display
from nosync_lint.link.contracts import Contract
from nosync_lint.link.program import Program
from nosync_lint.rule import ConfiguredName
from nosync_lint.source import Span


def configured_names(settings: Settings, program: Program) -> list[ConfiguredName]:
    """Every name, with whether the linked program has it."""
    if settings.path is None:
        return []
    folder = settings.path.parent
    unmatched, captured = set(program.unmatched_roots), program.capture.unmatched()
    untold = set(program.roots.told.unmatched())
    names = [
        _configured_name(settings, key, kind, name, "correct the name or remove it", name not in missing)
        for key, kind, listed, missing in (
            ("hot", "hot root", settings.configured_hot, unmatched),
            ("cold", "cold stop", settings.cold, unmatched),
            ("capture", "capture function", settings.capture, captured),
            ("waits", "function that waits", settings.waits, untold),
            ("cures", "function that cures", settings.cures, untold),
            ("returns-device", "function", settings.returns_device, untold),
            ("returns-host", "function", settings.returns_host, untold),
        )
        for name in listed
    ]
    names += [
        ConfiguredName(
            file_name(one.file), Span(one.row, 1, one.row, 1), "hot root", one.root,
            "correct the name or remove it", one.root not in unmatched,
        )
        for one in settings.budgets
    ]  # fmt: skip
    names += [
        _configured_name(
            settings, "extra-sources", "path", name, "correct the path or remove it", (folder / name).exists()
        )
        for name in settings.extra_sources
    ]
    names += [
        ConfiguredName(
            file_name(one.file), Span(one.row, 1, one.row, 1), "contract", f"{one.base}.{one.method}({one.argument})",
            "correct the names or remove the contract", program.keeps(Contract(one.base, one.method, one.argument)),
        )
        for one in settings.contract
    ]  # fmt: skip
    return names


def _configured_name(settings: Settings, key: str, kind: str, name: str, cure: str, exists: bool) -> ConfiguredName:
    row = settings.row(key)
    return ConfiguredName(file_name(settings.file(key)), Span(row, 1, row, 1), kind, name, cure, exists)


def file_name(path: Path | None) -> str:
    """A configuration file as findings name it."""
    return display(path.resolve(), Path.cwd()) if path is not None else ""
