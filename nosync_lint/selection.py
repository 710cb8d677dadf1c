"""Which rules a run asks, how severe they are, with which options, and of which files they say nothing."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from nosync_lint.config import ConfigError, RuleTable, Settings, display, matches, nearest
from nosync_lint.finding import Severity
from nosync_lint.registry import closeness, find, find_retired, named, nearest_rule, no_rule, rules
from nosync_lint.rule import Option, Rule, Status

LISTS = ("select", "extend-select", "ignore", "extend-ignore")


def select(settings: Settings) -> list[Rule]:
    """The rules that a run asks, as the project wants them. Files that cannot be read are always told."""
    return [configured(rule, settings) for rule in rules() if _runs(rule, settings)]


def _runs(rule: Rule, settings: Settings) -> bool:
    """Whether a rule is selected more closely than it is ignored: by code, the start of a code, or slug."""
    if rule.status is Status.PREVIEW and not settings.preview:
        return False
    always = "bad-file" in rule.sites or (rule.default and not settings.select)
    wanted = _closest(rule, (*settings.select, *settings.extend_select))
    return max(wanted, 1 if always else 0) > _closest(rule, (*settings.ignore, *settings.extend_ignore))


def _closest(rule: Rule, words: Iterable[str]) -> int:
    return max((closeness(rule, word) for word in words), default=0)


def configured(rule: Rule, settings: Settings) -> Rule:
    """A rule with the severity and the options that the project gives it."""
    told = [table for table in settings.rules if find(table.rule) is rule]
    if not told:
        return rule
    severity = next((Severity(table.severity) for table in reversed(told) if table.severity), None)
    return rule.configured(severity, {name: value for table in told for name, value in table.options})


def check_words(words: Iterable[str], where: str = "") -> None:
    """Raise `ConfigError` for a word that names no rule; `where` begins the message."""
    for word in words:
        if any(named(rule, word) for rule in rules()):
            continue
        former = find_retired(word)
        if former is not None:
            raise ConfigError(f"{where}`{word}` was removed in {former.since}: {former.why}; leave it out")
        raise ConfigError(f"{where}{no_rule(word)}")


def check_names(settings: Settings) -> None:
    """Raise `ConfigError` for a rule or an option in the configuration that there is not."""
    for key in LISTS:
        check_words(getattr(settings, key.replace("-", "_")), settings.place(key))
    for ignore in settings.per_file_ignores:
        check_words(ignore.rules, settings.place("per-file-ignores"))
    for table in settings.rules:
        _check_table(table, settings.place("rules"))


def _check_table(table: RuleTable, where: str) -> None:
    rule = find(table.rule)
    if rule is None:
        cure = "name one rule by its code or slug" if any(named(one, table.rule) for one in rules()) else ""
        hint = f"; {cure}" if cure else nearest_rule(table.rule)
        raise ConfigError(f"{where}[rules.{table.rule}]: no rule is called `{table.rule}`{hint}")
    known = {one.name: one for one in rule.options}
    for name, value in table.options:
        if name not in known:
            names = ("severity", *known)
            hint = nearest(name, names) or f"; it has {', '.join(f'`{one}`' for one in names)}"
            raise ConfigError(f"{where}[rules.{table.rule}]: {rule.code} has no option `{name}`{hint}")
        if not _fits(known[name], value):
            kind = _kind(known[name])
            raise ConfigError(f"{where}[rules.{table.rule}]: `{name}` must be {kind}, not {value!r}")


def _fits(option: Option, value: Any) -> bool:
    if isinstance(option.default, tuple):
        return isinstance(value, tuple) and all(isinstance(one, str) and one.strip() for one in value)
    if isinstance(option.default, bool):
        return isinstance(value, bool)
    return type(value) is int and value >= 0


def _kind(option: Option) -> str:
    if isinstance(option.default, tuple):
        return "a list of strings"
    return "true or false" if isinstance(option.default, bool) else "a number from 0"


def told_names(settings: Settings) -> Iterator[str]:
    """What a reader should know of the rules that are named: old names, rules in preview or on the way out."""
    listed = (*settings.select, *settings.extend_select)
    words = [*listed, *settings.ignore, *settings.extend_ignore, *(table.rule for table in settings.rules)]
    words += [word for ignore in settings.per_file_ignores for word in ignore.rules]
    for word in dict.fromkeys(words):
        former = find_retired(word)
        if former is not None and former.now:
            yield f"`{word}` is called `{former.now}` since {former.since}: {former.why}"
    for rule in rules():
        exact = [word for word in listed if closeness(rule, word) == len(rule.code)]
        if exact and rule.status is Status.PREVIEW and not settings.preview:
            yield f"`{exact[0]}` is selected and not asked: it is in preview; set `preview = true`"
        if exact and rule.status is Status.DEPRECATED:
            yield f"`{exact[0]}` is deprecated: see `nosync-lint rule {rule.code}`"


class FileIgnores:
    """What `per-file-ignores` says. Globs are relative to the configuration, or to the working directory."""

    def __init__(self, settings: Settings) -> None:
        self._ignores = settings.per_file_ignores
        self._here = Path.cwd()
        self._bases = {self._here, settings.path.resolve().parent if settings.path is not None else self._here}
        self._words = cache(self._find_words)

    def cover(self, rule: Rule, filename: str) -> bool:
        """Whether a rule says nothing of a file, given under the name that findings have."""
        return bool(self._ignores) and any(named(rule, word) for word in self._words(filename))

    def _find_words(self, filename: str) -> tuple[str, ...]:
        path = Path(os.path.normpath(self._here / filename))
        names = [display(path, base) for base in self._bases]
        found: list[str] = []
        for glob, words in self._ignores:
            meant = any(matches(name, glob.removeprefix("!")) for name in names)
            if meant != glob.startswith("!"):
                found += words
        return tuple(found)
