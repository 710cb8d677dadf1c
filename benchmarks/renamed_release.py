"""Shows that findings rest on what code does: renames a release consistently, moves its defects, and lints it again.

usage: python -m benchmarks.renamed_release FOLDER [--package NAME] [--paths PATH ...] [--keep FOLDER]

FOLDER holds an unpacked release. In a copy of it every class, function, method, attribute, parameter, local variable
and file that the project itself defines gets a meaningless name, in Python and in CUDA files, and every function that
holds a finding is split: a forwarding function takes its place and the body moves to a new one. Hot roots and cold
stops, which are partly found by name, are handed over by configuration. Prints the findings that did not come back
line for line, and those that are new; exits 1 if there are any.

Names stay that say something outside the project: those of libraries (torch, Python, whatever is imported), names that
are conventions of the field (`*_cpu`), guards of debug and platform blocks, and methods that a framework calls.
"""

from __future__ import annotations

import argparse
import ast
import builtins
import json
import keyword
import re
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from fnmatch import fnmatchcase
from pathlib import Path

from nosync_lint.config import Settings
from nosync_lint.discover import discover
from nosync_lint.index import default_jobs, index
from nosync_lint.index.cache import IndexCache
from nosync_lint.index.records import rows_of
from nosync_lint.link.program import Program
from nosync_lint.link.solver import with_room
from nosync_lint.models import load
from nosync_lint.pipeline import link

CODES = ("NSL101", "NSL301", "NSL501", "NSL502", "NSL601", "NSL602", "NSL603")
_TOKEN = re.compile(
    r"(?P<text>[rbufRBUF]{0,2}(?:\"\"\".*?\"\"\"|'''.*?'''|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'))"
    r"|(?P<comment>\#[^\n]*)|(?P<number>\d[\w.]*)|(?P<name>[^\W\d]\w*)",
    re.S,
)
_CUDA_TOKEN = re.compile(
    r"(?P<comment>//[^\n]*|/\*.*?\*/|\#[^\n]*)|(?P<text>\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*')|(?P<name>[^\W\d]\w*)",
    re.S,
)
_INCLUDE = re.compile(r"(^\s*\#\s*include\s*[<\"])([^>\"\n]+)([>\"])", re.M)
_CPP = {
    "auto",
    "bool",
    "char",
    "const",
    "constexpr",
    "device",
    "double",
    "float",
    "for",
    "if",
    "include",
    "int",
    "long",
}
_CPP |= {"return", "short", "signed", "sizeof", "static", "struct", "template", "this", "typename", "unsigned", "void"}
_FRAMEWORK = {"forward", "backward", "step", "main", "self", "cls", "args", "kwargs", "super", "property", "field"}
_FRAMEWORK |= {"staticmethod", "classmethod", "setter", "getter", "cached_property", "dataclass", "training_step"}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--package", default="sglang")
    parser.add_argument("--paths", nargs="+", default=["sglang/srt", "sglang/kernels"])
    parser.add_argument("--keep", type=Path, help="write the renamed copy here")
    options = parser.parse_args()
    before = _lint(options.folder, options.paths)
    target = options.keep or Path(tempfile.mkdtemp())
    program = with_room(lambda: _program(options.folder / options.package))
    names = _mapping(program)
    holders = _holders(program, before, options.folder)
    rows = _rewrite(options.folder, options.package, target, names, _cuda_mapping(program), holders)
    _write_config(target, program, names)
    after = _lint(target, [_path(path, names) for path in options.paths])
    expected = {
        (code, _path(name, names), rows.get((name, row), row)): f"{code} {name}:{row}" for code, name, row in before
    }
    missing = sorted(text for key, text in expected.items() if key not in after)
    added = sorted(f"{code} {name}:{row}" for code, name, row in after - set(expected))
    print(f"{len(names)} names changed; {len(expected)} findings before, {len(after)} after")
    for text in missing:
        print(f"  lost {text}")
    for text in added:
        print(f"  new  {text}")
    if not options.keep:
        shutil.rmtree(target)
    return 1 if missing or added else 0


def _lint(folder: Path, paths: list[str]) -> set[tuple[str, str, int]]:
    command = [sys.executable, "-m", "nosync_lint", "check", *paths, "--output-format", "json", "--no-cache"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(f"linting {folder} failed: {done.stderr}")
    found = json.loads(done.stdout)["findings"]
    return {(f["code"], f["filename"], f["location"]["row"]) for f in found if f["code"] in CODES}


def _program(folder: Path) -> Program:
    files = discover([str(folder)]).files
    return link(files, index(files, IndexCache(None), default_jobs(), 10**7), Settings(), ["2.13"])


def _mapping(program: Program) -> dict[str, str]:
    """Old names to new ones of the same style: leading underscores and capitals stay."""
    own: dict[str, None] = {}
    kept = _kept(program)
    for module in program.project.modules:
        own.update(dict.fromkeys(module.name.split(".")[1:]))
        for function in module.functions:
            record = function.record
            own[record.name] = None
            own.update(dict.fromkeys(parameter.name for parameter in record.parameters))
            own.update(dict.fromkeys(write.name for write in record.attributes))
            own.update(dict.fromkeys(n for n, found in record.definitions.items() if found[0].value[0] != "import"))
        own.update(dict.fromkeys(record.name for record in module.index.classes))
    wanted = [n for n in own if n.isidentifier() and "~" not in n and n not in kept and not _has_meaning(n)]
    return {name: _renamed(name, number) for number, name in enumerate(sorted(wanted))}


def _cuda_mapping(program: Program) -> dict[str, str]:
    """The same for CUDA files: kernels, their arguments, structs and fields, but not the matcher's own vocabulary."""
    own: set[str] = set()
    kept = {"run", "size", "stride", "data_ptr", "verify", "unwrap", "x", "y", "z", *_CPP}
    for file, cuda in program.cuda:
        names = own if "include" not in file.path.parts else kept
        for function in cuda.functions:
            names |= {function.name.rpartition("::")[2], *(parameter.name for parameter in function.parameters)}
        for struct in cuda.structs:
            names |= {struct.name.rpartition("::")[2], *(field.name for field in struct.fields)}
    return {name: _renamed(name, number) for number, name in enumerate(sorted(own - kept)) if name.isidentifier()}


def _renamed(name: str, number: int) -> str:
    lead = name[: len(name) - len(name.lstrip("_"))]
    return f"{lead}{'Zq' if name.lstrip('_')[:1].isupper() else 'zq'}_{number:05d}"


def _kept(program: Program) -> set[str]:
    """Names that mean something outside the project."""
    kept = set(keyword.kwlist) | set(keyword.softkwlist) | set(dir(builtins)) | _FRAMEWORK
    kept |= {name for row in load("values")["operation"] for name in row["names"]} | set(load("values")["attributes"])
    kept |= {"size", "stride", "data_ptr", "verify", "run", "host", "device", "dtype", "shape", "numel", "ndim", "dim"}
    for kind in (str, list, dict, set, tuple, int, float, bytes):
        kept |= set(dir(kind))
    for module in program.project.modules:
        for function in module.functions:
            for name, found in function.record.definitions.items():
                value = found[0].value
                if value[0] == "import":
                    inside = program.project.find_module(value[1] or "", module) is not None or value[3]
                    kept |= set() if inside else {name, *(value[1] or "").split("."), value[2] or name}
            for site in function.record.calls:
                if _is_external(program, module, site.call[1]):
                    kept |= {word for word, _ in site.call[3] if word}
                    kept |= _attributes(site.call[1])
    kept.add(program.project.modules[0].name.partition(".")[0])
    return kept


def _is_external(program: Program, module: object, func: tuple[object, ...]) -> bool:
    while func[0] in ("attr", "call", "sub"):
        func = func[1]  # type: ignore[assignment]
    if func[0] != "name":
        return False
    value = program.project.symbol(module, func[1])  # type: ignore[arg-type]
    if value is not None and value.kind == "module":
        return program.project.find_module(value.ref) is None
    return value is not None and value.kind == "extern"


def _attributes(func: tuple[object, ...]) -> set[str]:
    names: set[str] = set()
    while func[0] in ("attr", "call", "sub"):
        if func[0] == "attr":
            names.add(str(func[2]))
        func = func[1]  # type: ignore[assignment]
    return names


def _has_meaning(name: str) -> bool:
    """Whether a name is evidence by itself: a host convention, or the guard of a debug or platform block."""
    conventions = load("values")["conventions"]
    blocks = load("presets")["blocks"]
    patterns = [p for kind in conventions.values() for p in kind] + [p for kind in blocks.values() for p in kind]
    return any(fnmatchcase(name, pattern) for pattern in patterns) or (name.startswith("__") and name.endswith("__"))


def _holders(program: Program, findings: set[tuple[str, str, int]], folder: Path) -> dict[str, set[int]]:
    """The rows of the `def` of every plain method that holds a finding of an executed line, by file."""
    holders: dict[str, set[int]] = defaultdict(set)
    wanted = defaultdict(set)
    for code, name, row in findings:
        if code in ("NSL101", "NSL301"):
            wanted[str((folder / name).resolve())].add(row)
    for module in program.project.modules:
        rows = wanted.get(str(module.file.path), set())
        for function in module.functions:
            record = function.record
            first, last = rows_of(record.pos)
            plain = record.form == "function" and not record.decorators and "generator" not in record.flags
            if plain and function.cls is not None and any(first < row <= last for row in rows):
                holders[str(module.file.path)].add(first)
    return holders


def _rewrite(
    folder: Path,
    package: str,
    target: Path,
    names: dict[str, str],
    cuda_names: dict[str, str],
    holders: dict[str, set[int]],
) -> dict[tuple[str, int], int]:
    """Write the renamed copy. Returns where each row of a file with moved bodies has gone."""
    rows: dict[tuple[str, int], int] = {}
    for path in sorted((folder / package).rglob("*")):
        if path.suffix not in (".py", ".cuh", ".cu", ".h", ".cpp", ".hpp") or not path.is_file():
            continue
        name = path.relative_to(folder).as_posix()
        text = path.read_text(encoding="utf-8", errors="surrogateescape")
        if path.suffix == ".py":
            text, moved = _split(text, holders.get(str(path.resolve()), set()))
            rows.update({(name, old): new for old, new in moved.items()})
            text = _TOKEN.sub(lambda match: _replace(match, names), text)
        else:
            text = _CUDA_TOKEN.sub(lambda match: _replace(match, cuda_names), text)
            text = _INCLUDE.sub(lambda match: match[1] + _path(match[2], names) + match[3], text)
        out = target / _path(name, names)
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(text, encoding="utf-8", errors="surrogateescape")
    for info in folder.glob("*.dist-info"):
        shutil.copytree(info, target / info.name, dirs_exist_ok=True)
    return rows


def _replace(match: re.Match[str], names: dict[str, str]) -> str:
    name = match["name"]
    if name is not None:
        return names.get(name, name)
    text = match["text"]
    if text is not None and text[1:-1] in names and text[0] in "\"'":  # getattr(x, "name")
        return text[0] + names[text[1:-1]] + text[-1]
    return match[0]


def _path(name: str, names: dict[str, str]) -> str:
    """A file name with its folders and stem renamed."""
    *folders, last = name.split("/")
    stem, dot, suffix = last.partition(".")
    return "/".join([*(names.get(part, part) for part in folders), names.get(stem, stem) + dot + suffix])


def _split(text: str, rows: set[int]) -> tuple[str, dict[int, int]]:
    """Move the bodies of the functions at these rows behind a forwarding function."""
    if not rows:
        return text, {}
    tree = ast.parse(text)
    lines = text.splitlines(keepends=True)
    inserted: dict[int, list[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.lineno in rows and node.name != "__init__":
            header = (
                "".join(lines[node.lineno - 1 : node.body[0].lineno - 1]) if node.body[0].lineno > node.lineno else ""
            )
            if not header.rstrip().endswith(":"):
                header = header[: header.rindex(":\n") + 2] if ":\n" in header else ""
            if not header:
                continue
            indent = " " * node.col_offset
            given = [arg.arg for arg in node.args.args[1:]] + [f"{arg.arg}={arg.arg}" for arg in node.args.kwonlyargs]
            inserted[node.lineno] = [header, f"{indent}    return self.{node.name}_moved({', '.join(given)})\n", "\n"]
            lines[node.lineno - 1] = lines[node.lineno - 1].replace(f"def {node.name}", f"def {node.name}_moved", 1)
    moved: dict[int, int] = {}
    out: list[str] = []
    for number, line in enumerate(lines, 1):
        out += inserted.get(number, [])
        moved[number] = "".join(out).count("\n") + 1
        out.append(line)
    return "".join(out), moved


def _write_config(target: Path, program: Program, names: dict[str, str]) -> None:
    roots, stops = [], []
    for function in program.project.functions:
        if function.record.form != "function":
            continue
        name = ".".join(names.get(part, part) for part in function.name.split("."))
        if program.roots.is_hot(function):
            roots.append(name)
        elif program.roots.is_cold(function):
            stops.append(name)
    (target / "nosync-lint.toml").write_text(
        f"hot = {json.dumps(sorted(set(roots)))}\ncold = {json.dumps(sorted(set(stops)))}\n"
    )


if __name__ == "__main__":
    raise SystemExit(main())
