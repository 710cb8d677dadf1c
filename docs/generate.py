"""Writes `docs/rules/`, the keys in `docs/configuration.md`, and the JSON Schema. `--check` only compares.

A rule's page is made from its docstring and samples. The keys stand between two marks of a page written by hand.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from nosync_lint.config import TABLE, Key, default_toml
from nosync_lint.registry import PACKAGE, documentation, rules, summary
from nosync_lint.rule import Rule, Status
from nosync_lint.schema import schema, type_of

ROOT = Path(__file__).resolve().parent.parent
PAGES = ROOT / "docs" / "rules"
CONFIGURATION = ROOT / "docs" / "configuration.md"
SCHEMA = ROOT / "docs" / "nosync-lint.schema.json"
KEYS_BEGIN, KEYS_END = "<!-- keys: written by docs/generate.py -->\n", "<!-- end of keys -->\n"
FIXTURES = ROOT / "fixtures"
SECTIONS = ("Why it matters", "Instead", "Missed alarms", "False alarms")
MAX_LINES = 40
"""A clean sample is shown up to the last construct that ends within so many lines."""

FAMILIES = {
    "0": "The run itself",
    "1": "Host to device",
    "2": "Device to host",
    "3": "Shapes that depend on data",
    "4": "Explicit waits",
    "5": "Allocator contracts",
    "6": "Kernels and their matchers",
    "7": "Graph capture",
}
_WITHOUT_COMMENT = {"suppression", "bad-file", "configured-name", "census", "baseline-entry", "budget"}
"""Kinds of sites about which no comment can say that they are meant."""
_LANGUAGES = {".py": "python", ".toml": "toml", ".ipynb": "json", ".txt": "text"}
_MARKER = re.compile(r"(?:#|//)\s*error: \[")


class Undocumented(Exception):
    """A rule lacks a section of its docstring or a sample; the message names the rule."""


def pages() -> dict[Path, str]:
    """Every page by its path. Raises `Undocumented` with all that is missing."""
    written, missing = {PAGES / "index.md": index(), CONFIGURATION: configuration(), SCHEMA: schema_text()}, []
    for rule in own_rules():
        try:
            written[PAGES / f"{rule.slug()}.md"] = page(rule)
        except Undocumented as error:
            missing.append(str(error))
    if missing:
        raise Undocumented("\n".join(missing))
    return written


def configuration() -> str:
    """The page of the configuration, with the keys as they are."""
    page = CONFIGURATION.read_text(encoding="utf-8")
    head, begin, rest = page.partition(KEYS_BEGIN)
    _, end, tail = rest.partition(KEYS_END)
    if not begin or not end:
        raise Undocumented(f"{CONFIGURATION.name}: it has no place for the keys")
    return f"{head}{begin}\n{''.join(_keys())}\n{_rule_options()}\n{end}{tail}"


def _keys() -> Iterator[str]:
    for key in TABLE.values():
        example = f", for example `{key.name} = {key.example}`" if key.example else ""
        yield f"### `{key.name}`\n\n{key.about[0].upper()}{key.about[1:]}.\n\n"
        yield f"Type: {_type(key)}. Default: `{default_toml(key.name)}`{example}.\n\n"


def _type(key: Key) -> str:
    named = ", ".join(f"`{one}`" for one in key.form.choices)
    if not named:
        return type_of(key)
    return f"one of {named}" if key.form.name == "string" else f"list of {named}"


def _rule_options() -> str:
    """What may be said of single rules besides `severity`."""
    lines = ["### Options of rules", "", "| rule | option | default | what it does |", "|---|---|---|---|"]
    lines += [
        f"| {rule.code} `{rule.slug()}` | `{one.name}` | `{json.dumps(one.default)}` | {one.about} |"
        for rule in own_rules()
        for one in rule.options
    ]
    return "\n".join(lines) + "\n"


def schema_text() -> str:
    """The JSON Schema of the configuration, as a file."""
    return json.dumps(schema(), indent=2) + "\n"


def own_rules() -> list[Rule]:
    """The rules of this distribution, without those that others add."""
    return [rule for rule in rules() if type(rule).__module__.startswith(f"{PACKAGE}.")]


def page(rule: Rule) -> str:
    """The page of one rule. Raises `Undocumented`."""
    sections = _sections(rule)
    heat = "Shown for hot lines by default" if rule.heated else "Shown whatever the heat"
    parts = [
        f"# {rule.slug()} ({rule.code})",
        summary(rule),
        f"Severity **{rule.severity.value}**. {heat}. Since {rule.since}.{_standing(rule)}",
        f"## Why it matters\n\n{sections['Why it matters']}",
        f"## Instead\n\n{sections['Instead']}",
        *_fixes(rule),
        f"## Flagged\n\n{_sample(rule, 'flagged')}",
        f"## Clean\n\n{_sample(rule, 'clean')}",
        f"## Missed alarms\n\n{sections['Missed alarms']}",
        f"## False alarms\n\n{sections['False alarms']}",
    ]
    if not _WITHOUT_COMMENT & set(rule.sites):
        comment = f"`nosync-lint: ignore[{rule.slug()}] reason`"
        parts.append(f"Where a finding is meant to stay: {comment} in a comment on the statement.")
    return "\n\n".join(parts) + "\n"


def _standing(rule: Rule) -> str:
    """Where a rule is in its life, unless it simply runs."""
    told = {Status.STABLE: "", Status.PREVIEW: " In preview.", Status.DEPRECATED: " Deprecated."}[rule.status]
    return told + ("" if rule.default else " Runs only where it is selected.")


def _fixes(rule: Rule) -> Iterator[str]:
    """The recipes by which a rule's findings can be fixed."""
    if rule.recipes:
        links = ", ".join(f"[{recipe}](../fixes.md#{recipe})" for recipe in rule.recipes)
        yield f"## Fixes\n\n{links}: what they mean, when they are safe, and what they change for streams."


def index() -> str:
    """The table of all rules, by family."""
    lines = [
        "# Rules",
        "",
        "The slug is the name of a rule, the code an alias for tools that need one. Codes are never reused.",
    ]
    family = ""
    for rule in own_rules():
        if rule.code[3] != family:
            family = rule.code[3]
            heading = FAMILIES.get(family, f"Family {family}")
            lines += ["", f"## {heading}", "", "| code | rule | severity | what it is |", "|---|---|---|---|"]
        told = summary(rule).replace("|", "\\|")
        lines.append(f"| {rule.code} | [{rule.slug()}]({rule.slug()}.md) | {rule.severity.value} | {told} |")
    return "\n".join(lines) + "\n"


def _sections(rule: Rule) -> dict[str, str]:
    """The indented parts of a rule's docstring by the line above them."""
    found: dict[str, list[str]] = {}
    current: list[str] = []
    for line in documentation(rule).splitlines()[1:]:
        if line and not line[0].isspace():
            current = found.setdefault(line.strip(), [])
        else:
            current.append(line.removeprefix("    "))
    missing = [name for name in SECTIONS if not "".join(found.get(name, ())).strip()]
    if missing:
        raise Undocumented(f"{rule.code} {rule.slug()}: its docstring has no section {', '.join(missing)}")
    return {name: "\n".join(found[name]).strip() for name in SECTIONS}


def _sample(rule: Rule, kind: str) -> str:
    """The sample file of a kind, or the files of the sample folder, as fenced code. Raises `Undocumented`."""
    folder = FIXTURES / rule.slug()
    files = sorted(path for path in folder.glob(f"{kind}.*") if path.is_file() and ".fixed." not in path.name)[:1]
    titled = not files
    if titled:
        files = sorted(path for path in (folder / kind).rglob("*") if path.is_file() and path.name[0] != ".")
    if not files:
        raise Undocumented(f"{rule.code} {rule.slug()}: no {kind} sample at fixtures/{rule.slug()}/{kind}.* or {kind}/")
    shown = []
    for path in files:
        name = f"`{path.relative_to(folder / kind).as_posix()}`\n\n" if titled else ""
        code = _excerpt(path, to_first_marker=kind == "flagged")
        shown.append(f"{name}```{_LANGUAGES.get(path.suffix, 'cpp')}\n{code}\n```")
    return "\n\n".join(shown)


def _excerpt(path: Path, to_first_marker: bool) -> str:
    """The file up to the end of the construct that is flagged first, or of the last one within `MAX_LINES`."""
    text = path.read_bytes().decode("utf-8", "backslashreplace").replace("\0", "\\x00").replace("\r", "")
    lines = text.splitlines()
    ends = sorted({*(_python_ends(text) if path.suffix == ".py" else _brace_ends(lines)), len(lines)})
    marked = next((row for row, line in enumerate(lines, 1) if _MARKER.search(line)), None)
    if to_first_marker and marked is not None:
        end = next(row for row in ends if row >= marked)
    else:
        end = max((row for row in ends if row <= MAX_LINES), default=ends[0])
    return "\n".join(line.rstrip() for line in lines[:end]).strip("\n")


def _python_ends(text: str) -> Iterator[int]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.end_lineno or node.lineno


def _brace_ends(lines: Sequence[str]) -> Iterator[int]:
    """The rows where a brace closes at the level of the file or of a namespace."""
    depth = base = 0
    for row, line in enumerate(lines, 1):
        code = line.partition("//")[0]
        if re.match(r"\s*(inline\s+)?namespace\b.*\{\s*$", code):
            base += 1
        depth += code.count("{") - code.count("}")
        base = min(base, depth)
        if "}" in code and depth == base > 0:
            yield row


def stale(wanted: Mapping[Path, str]) -> list[Path]:
    """The pages that are missing, differ, or belong to no rule."""
    differing = {path for path, text in wanted.items() if not path.exists() or path.read_text(encoding="utf-8") != text}
    return sorted(differing | (set(PAGES.glob("*.md")) - set(wanted)))


def main(argv: Sequence[str] | None = None) -> int:
    """Write the pages; with `--check` exit 1 where they are not what would be written. 2 where a rule lacks a part."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a page is not current")
    options = parser.parse_args(argv)
    try:
        wanted = pages()
    except Undocumented as error:
        print(error, file=sys.stderr)
        return 2
    changed = stale(wanted)
    for path in changed:
        name = path.relative_to(ROOT)
        if options.check:
            print(f"not current: {name}")
        elif path in wanted:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(wanted[path], encoding="utf-8", newline="\n")
            print(f"written: {name}")
        else:
            path.unlink()
            print(f"removed: {name}")
    return 1 if options.check and changed else 0


if __name__ == "__main__":
    raise SystemExit(main())
