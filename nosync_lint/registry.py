"""The rules there are: those in the installed `nosync_lint.rules` package and those of other distributions."""

from __future__ import annotations

import difflib
import importlib
import inspect
import pkgutil
import re
from functools import cache
from importlib.metadata import EntryPoint, PackageNotFoundError, entry_points, metadata

from nosync_lint.finding import RuleFacts, Severity
from nosync_lint.rule import Retired, Rule

PACKAGE = "nosync_lint.rules"
ENTRY_POINTS = "nosync_lint.rules"
CLOSE = 0.75
"""How alike a word and the name of a rule must be, of 1, to ask whether that is meant."""


class RulesMissing(Exception):
    """The rules cannot be loaded: from a bare checkout, or because of a plugin. The text says what cures it."""


@cache
def rules() -> tuple[Rule, ...]:
    """One instance of every rule, by code. Raises `RulesMissing`."""
    found = {rule.code: rule for rule in _own()}
    slugs = {rule.slug(): rule for rule in found.values()}
    for entry in sorted(entry_points(group=ENTRY_POINTS), key=lambda entry: entry.name):
        origin = f"entry point `{entry.name}` of {ENTRY_POINTS}{f' in {entry.dist.name}' if entry.dist else ''}"
        for rule in _plugged(entry, origin):
            clash = found.get(rule.code) or slugs.get(rule.slug())
            if clash is not None:
                raise RulesMissing(
                    f"{origin}: {rule.code} {rule.slug()} has the code or name of {clash.code} {clash.slug()} in "
                    f"{type(clash).__module__}; rename it or uninstall its package"
                )
            found[rule.code] = slugs[rule.slug()] = rule
    return tuple(sorted(found.values(), key=lambda rule: rule.code))


def _own() -> list[Rule]:
    try:
        package = importlib.import_module(PACKAGE)
    except ModuleNotFoundError as error:
        raise RulesMissing(
            "the rules are not importable: this is a bare checkout; run `pip install -e .` in it first"
        ) from error
    found: list[Rule] = []
    for info in pkgutil.iter_modules(package.__path__, PACKAGE + "."):
        module = importlib.import_module(info.name)
        found += [
            cls()
            for _, cls in inspect.getmembers(module, inspect.isclass)
            if issubclass(cls, Rule) and cls.__module__ == module.__name__ and not inspect.isabstract(cls)
        ]
    return found


def _plugged(entry: EntryPoint, origin: str) -> list[Rule]:
    """The rules of an entry point, which names a rule or a list of them. Raises `RulesMissing`."""
    try:
        loaded = entry.load()
    except (Exception, SystemExit) as error:  # code that is not ours
        raise RulesMissing(
            f"{origin}: cannot be loaded: {type(error).__name__}: {error}; repair or uninstall its package"
        ) from error
    found = []
    for one in loaded if isinstance(loaded, list | tuple) else [loaded]:
        told = fault(one)
        if told:
            raise RulesMissing(f"{origin}: `{getattr(one, '__name__', one)}` {told}; repair or uninstall its package")
        found.append(one())
    return found


def fault(cls: object) -> str:
    """Why something cannot be used as a rule of a plugin; empty where it can."""
    if not (inspect.isclass(cls) and issubclass(cls, Rule)):
        return "is no class that derives from `nosync_lint.rule.Rule`"
    if inspect.isabstract(cls):
        return "has no `judge`"
    missing = [name for name in ("code", "since", "severity", "sites") if not hasattr(cls, name)]
    if missing:
        return f"has no `{missing[0]}`"
    code, severity, sites = (getattr(cls, name) for name in ("code", "severity", "sites"))
    if not isinstance(code, str) or not re.fullmatch(r"(?!NSL)[A-Z]{3}\d{3}", code):
        return f"has the code {code!r}: it takes three capital letters, not NSL, and three digits"
    if not isinstance(severity, Severity):
        return f"has the severity {severity!r}: it takes a `Severity`"
    if not isinstance(sites, tuple) or not sites:
        return f"has the sites {sites!r}: it takes a tuple of kinds of sites"
    if not inspect.getdoc(importlib.import_module(cls.__module__)):
        return "has no documentation: the docstring of its module tells what it is about"
    return ""


@cache
def retired() -> tuple[Retired, ...]:
    """The codes and slugs that no rule has any more."""
    return tuple(importlib.import_module(PACKAGE).RETIRED)


def find_retired(name: str) -> Retired | None:
    """The rule that once had this code or slug."""
    return next((one for one in retired() if name.upper() == one.code or name.lower() == one.slug), None)


def named(rule: Rule, word: str) -> bool:
    """Whether a word of `select` or `ignore` names a rule: its code, the start of it, or its slug."""
    return closeness(rule, word) > 0


def closeness(rule: Rule, word: str) -> int:
    """How closely a word names a rule: the letters of its code that it gives, all for a slug, 0 where it does not.

    The former code or slug of a rule names it, too.
    """
    former = find_retired(word)
    if former is not None:
        word = former.now or word
    if rule.slug() == word.lower():
        return len(rule.code)
    return len(word) if rule.code.startswith(word.upper()) else 0


def find(name: str) -> Rule | None:
    """The rule with this code or slug, or that took the place of one."""
    former = find_retired(name)
    if former is not None and former.now:
        name = former.now
    return next((rule for rule in rules() if name.upper() == rule.code or name.lower() == rule.slug()), None)


def nearest_rule(name: str) -> str:
    """A question whether another rule is meant, or nothing."""
    codes, slugs = [rule.code for rule in rules()], [rule.slug() for rule in rules()]
    close = difflib.get_close_matches(name.upper(), codes, 1, CLOSE)
    close = close or difflib.get_close_matches(name.lower(), slugs, 1, CLOSE)
    return f", did you mean `{close[0]}`?" if close else ""


def no_rule(name: str) -> str:
    """That no rule has this name, and how to find the right one."""
    guess = nearest_rule(name) or ";"
    return f"no rule is called `{name}`{guess} `nosync-lint rule --all` lists them"


def summary(rule: Rule) -> str:
    """The defect in one sentence: the first line of the rule's module."""
    return documentation(rule).partition("\n")[0]


def documentation(rule: Rule) -> str:
    """The docstring of the rule's module."""
    return inspect.cleandoc(importlib.import_module(type(rule).__module__).__doc__ or "")


def facts(rule: Rule) -> RuleFacts:
    """What reports say of a rule."""
    return RuleFacts(rule.code, rule.slug(), rule.severity, summary(rule), documentation(rule), rule.sites, page(rule))


def page(rule: Rule) -> str:
    """The address of a rule's page; empty for rules of others, and where our distribution names no site."""
    ours = type(rule).__module__.startswith(f"{PACKAGE}.")
    return f"{_site()}/rules/{rule.slug()}.html" if ours and _site() else ""


@cache
def _site() -> str:
    """Where our documentation is published: the project URL `Documentation` of the installed distribution."""
    try:
        named: list[str] = metadata("nosync-lint").get_all("Project-URL") or []
    except PackageNotFoundError:  # imported from a path
        return ""
    urls = [url.removeprefix("Documentation, ").rstrip("/") for url in named if url.startswith("Documentation, ")]
    return urls[0] if urls else ""
