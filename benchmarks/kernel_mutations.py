"""Breaks the fixed kernels of a release one way at a time and asks the matcher rules what they see.

    python benchmarks/kernel_mutations.py FOLDER

FOLDER holds the unpacked sglang 0.5.19 wheel. The sites are found by dataflow: three-dimensional matches of a
tensor whose slot and window strides reach an address computation. Exit status 1 when a rule stays silent on a
mutant, or speaks on one that is sound.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, NamedTuple, cast

from nosync_lint.index.cuda import index_cuda
from nosync_lint.index.cuda_records import CudaIndex
from nosync_lint.index.records import rows_of
from nosync_lint.link.kernel_sources import KernelSources
from nosync_lint.link.kernels import Census, Kernels, MatchContract
from nosync_lint.rule import Rule
from nosync_lint.source import CUDA_SUFFIXES, Span

if TYPE_CHECKING:
    from nosync_lint.link.program import Program

ROOT = Path(__file__).resolve().parent.parent
RULES = {
    "NSL601": "over_strict_matcher",
    "NSL602": "over_permissive_matcher",
    "NSL603": "unmatched_kernel_argument",
    "NSL604": "matcher_census",
}
EXPECTED_SITES = 7
NO_SPAN = Span(1, 1, 1, 1)


class Mutation(NamedTuple):
    """`edit` changes the lines of a file around a contract; `code` is the rule that must speak, `silent` must not."""

    name: str
    edit: Callable[[list[str], MatchContract], None]
    code: str | None
    silent: str | None = None


def rule(code: str) -> Rule:
    spec = importlib.util.spec_from_file_location(RULES[code], ROOT / "rules" / f"{RULES[code]}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    name = "".join(part.capitalize() for part in RULES[code].split("_"))
    made: Rule = getattr(module, name)()
    return made


def findings(code: str, kernels: Kernels, site: MatchContract, census: Census) -> list[str]:
    """Messages of one rule that concern the mutated argument, at its row or (NSL603) in its function."""
    sites: dict[str, Sequence[object]] = {
        "NSL601": [
            c for c in kernels.contracts() if (c.path, c.row, c.argument) == (site.path, site.row, site.argument)
        ],
        "NSL602": [
            c for c in kernels.contracts() if (c.path, c.row, c.argument) == (site.path, site.row, site.argument)
        ],
        "NSL603": [u for u in kernels.unmatched_arguments() if (u.path, u.function) == (site.path, site.function)],
        "NSL604": [census],
    }
    program = cast("Program", SimpleNamespace(kernels=kernels))
    said = [judgement.message for each in sites[code] for judgement in RULE[code].judge(each, program)]
    return [message for message in said if code == "NSL604" or f"`{site.argument}`" in message]


def rows(site: MatchContract) -> range:
    """The lines of a matcher, counted from 0."""
    first, last = rows_of(site.pos)
    return range(first - 1, last)


def replaced(pattern: str, by: str) -> Callable[[list[str], MatchContract], None]:
    def edit(lines: list[str], site: MatchContract) -> None:
        for row in rows(site):
            lines[row] = re.sub(pattern, by, lines[row])

    return edit


def without_check(lines: list[str], site: MatchContract) -> None:
    """Removes the explicit check of the inner stride in the same function: the next one after the matcher."""
    for row in range(rows(site).stop, len(lines)):
        if f"{site.argument}.stride(2) == 1" in lines[row]:
            lines[row] = ""
            return


def both(*edits: Callable[[list[str], MatchContract], None]) -> Callable[[list[str], MatchContract], None]:
    def edit(lines: list[str], site: MatchContract) -> None:
        for each in edits:
            each(lines, site)

    return edit


def deleted(lines: list[str], site: MatchContract) -> None:
    for row in rows(site):
        lines[row] = ""


WILD = replaced(r"\.with_strides\(\{-1, -1, 1\}\)", ".with_strides({-1, -1, -1})")
MUTATIONS = (
    Mutation("unchanged", lambda lines, site: None, None, "NSL601"),
    Mutation("unchanged", lambda lines, site: None, None, "NSL602"),
    Mutation("stride list removed", replaced(r"\.with_strides\(\{[^}]*\}\)", ""), "NSL601"),
    Mutation("slot stride pinned", replaced(r"\{-1, -1, 1\}", "{3 * 512, -1, 1}"), "NSL601"),
    Mutation("inner wildcard, check removed", both(WILD, without_check), "NSL602"),
    Mutation("inner wildcard, check kept", WILD, None, "NSL602"),
    Mutation("dtype dropped", replaced(r"\.with_dtype<[^>]*>\(\)", ""), "NSL602"),
    Mutation("matcher deleted", deleted, "NSL603"),
    Mutation("matcher deleted", deleted, "NSL604"),
)
RULE = {code: rule(code) for code in RULES}


def main(folder: Path) -> int:
    texts = {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8", errors="replace")
        for path in sorted(folder.rglob("*"))
        if path.suffix in CUDA_SUFFIXES and path.is_file()
    }
    indexes: dict[str, CudaIndex] = {path: index_cuda(text) for path, text in texts.items()}
    sources = KernelSources(indexes)
    sites = [
        contract
        for contract in Kernels(indexes).contracts()
        if contract.matcher.strides == ("-1", "-1", "1")
        and {use.dimension for use in contract.strides} == {0, 1}
        and contract.matcher.shape[0] == "-1"
        and f"{contract.argument}.stride(2) == 1" in texts[contract.path]
    ]
    wrong = 0
    for site in sites:
        files = {path: indexes[path] for path in sources.visible(site.path)}
        counted = Kernels(files).census(site.path, "rank=3").total
        census = Census("census", "pyproject.toml", NO_SPAN, site.path, counted, "rank=3")
        for mutation in MUTATIONS:
            lines = texts[site.path].split("\n")
            mutation.edit(lines, site)
            kernels = Kernels({**files, site.path: index_cuda("\n".join(lines))})
            asked = mutation.code or mutation.silent
            assert asked is not None
            said = findings(asked, kernels, site, census)
            good = bool(said) == (mutation.code is not None)
            wrong += not good
            verdict = "reported" if said else "silent"
            print(f"{'ok ' if good else 'BAD'} {asked} {verdict:8} {mutation.name:30} {site.path}:{site.row}")
    print(f"{len(sites)} sites, {len(MUTATIONS)} mutations each, {wrong} deviations")
    if len(sites) != EXPECTED_SITES:
        print(f"{EXPECTED_SITES} sites were expected: is this sglang 0.5.19?")
    return int(wrong > 0 or len(sites) != EXPECTED_SITES)


if __name__ == "__main__":
    if len(sys.argv) != 2 or not Path(sys.argv[1]).is_dir():
        sys.exit("usage: kernel_mutations.py FOLDER, the unpacked sglang 0.5.19 wheel")
    sys.exit(main(Path(sys.argv[1])))
