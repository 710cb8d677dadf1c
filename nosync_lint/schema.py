"""The configuration as a JSON Schema, for editors and validators. It is made from the keys that the reader knows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any

from nosync_lint.config import KEYS, SEVERITIES, TABLE, WHERE, Key, default_toml
from nosync_lint.registry import rules, summary
from nosync_lint.rule import Option, Rule

DIALECT = "https://json-schema.org/draft/2020-12/schema"
TEXT = {"type": "string", "pattern": r"\S"}
NAMES = {"type": "array", "items": {"anyOf": [{"$ref": "#/$defs/rule-name"}, TEXT]}}
"""Rules by name. Editors offer ours; the start of a code, and rules of other distributions, are names as well."""


def schema() -> dict[str, Any]:
    """The schema of a nosync-lint.toml, and of the table `[tool.nosync-lint]`."""
    return {
        "$schema": DIALECT,
        "title": "nosync-lint",
        "description": "The keys of nosync-lint.toml, and of [tool.nosync-lint] in pyproject.toml.",
        "type": "object",
        "additionalProperties": False,
        "properties": {name: {**_form(TABLE[name]), "description": TABLE[name].about} for name in KEYS},
        "$defs": {
            "rule-name": {"enum": [word for rule in rules() for word in (rule.slug(), rule.code)]},
            "severity": {"enum": list(SEVERITIES), "description": "how bad its findings are"},
        },
    }


def described(key: Key) -> dict[str, Any]:
    """A key for programs: its name, what it means, its type and its default."""
    return {
        "name": key.name,
        "description": key.about,
        "type": type_of(key),
        "choices": list(key.form.choices),
        "default": default_toml(key.name),
        "example": key.example,
    }


def type_of(key: Key) -> str:
    """The type of a key in words."""
    return {
        "strings": "list of strings",
        "names": "list of rules",
        "tables": "array of tables",
        "globs": "table of globs with lists of rules",
        "rules": "table of tables, one for a rule",
        "budgets": "table of hot roots with numbers",
    }.get(key.form.name, key.form.name)


def _form(key: Key) -> dict[str, Any]:
    form = key.form
    if form.name == "rules":
        named = {name: _rule(rule) for rule in rules() for name in (rule.slug(), rule.code)}
        severity = {"severity": {"$ref": "#/$defs/severity"}}
        return {
            "type": "object",
            "properties": named,
            "additionalProperties": {"type": "object", "properties": severity},
        }
    if form.name == "globs":
        return {"type": "object", "propertyNames": {"pattern": r"^(?!!\s*$)(?=.*\S)"}, "additionalProperties": NAMES}
    if form.name == "budgets":
        count = {"type": "integer", "minimum": 0}
        return {"type": "object", "propertyNames": {"pattern": r"\S"}, "additionalProperties": count}
    if form.name == "tables":
        return {"type": "array", "items": _record(form.record)}
    if form.name == "names":
        return NAMES
    if form.name == "strings":
        return {"type": "array", "items": {"enum": list(form.choices)} if form.choices else TEXT}
    if form.choices:
        return {"enum": list(form.choices), "default": key.default}
    limits: dict[str, Any] = {"minimum": form.minimum} if form.name == "integer" else {}
    return {"type": form.name, **limits, **({"pattern": r"\S"} if form.filled else {}), "default": key.default}


def _rule(rule: Rule) -> dict[str, Any]:
    options = {one.name: {**_option(one), "description": one.about} for one in rule.options}
    return {
        "type": "object",
        "description": summary(rule),
        "additionalProperties": False,
        "properties": {"severity": {"$ref": "#/$defs/severity"}, **options},
    }


def _option(option: Option) -> Mapping[str, Any]:
    if isinstance(option.default, tuple):
        return {"type": "array", "items": TEXT, "default": list(option.default)}
    form = {"type": "boolean"} if isinstance(option.default, bool) else {"type": "integer", "minimum": 0}
    return {**form, "default": option.default}


def _record(record: Any) -> dict[str, Any]:
    parts = [one for one in fields(record) if one.name not in ("row", "file")]
    forms = {"matches": {"type": "integer"}, "where": {"type": "string", "pattern": f"^(?:{WHERE})$"}}
    return {
        "type": "object",
        "additionalProperties": False,
        "required": [one.name for one in parts if one.default is MISSING],
        "properties": {one.name: forms.get(one.name, {"type": "string"}) for one in parts},
    }
