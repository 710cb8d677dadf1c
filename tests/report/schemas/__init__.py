"""Validation of reports by the schemas beside this file."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import xmlschema
from jsonschema import Draft7Validator

FILES = {
    "sarif": "sarif-schema-2.1.0.json",
    "gitlab": "gitlab-code-quality.schema.json",
    "rdjson": "rdjson.schema.json",
}


@cache
def _json_schema(form: str) -> Draft7Validator:
    schema = json.loads((Path(__file__).parent / FILES[form]).read_text(encoding="utf-8"))
    Draft7Validator.check_schema(schema)
    return Draft7Validator(schema)


@cache
def _xml_schema() -> xmlschema.XMLSchema:
    return xmlschema.XMLSchema(Path(__file__).parent / "junit-10.xsd")


def is_valid(form: str, report: Any) -> None:
    """Raise where a report, read from JSON or as XML text, is not what the schema of its format demands."""
    if form == "junit":
        _xml_schema().validate(report)
    else:
        _json_schema(form).validate(report)
