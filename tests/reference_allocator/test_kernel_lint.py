"""The linter judges every matcher of the kernels: silent on the tree as it is, not on a chain that lost something."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from nosync_lint.report import Report

pytestmark = pytest.mark.host("reads the text of the kernels")

FOLDER = Path(__file__).resolve().parents[2] / "reference_allocator"
CENSUS = '[[census]]\nfiles = "reference_allocator/kernels/*.cuh"\nmatches = 7\nwhere = "rank=3"\n'
STATE = re.compile(r'  Match\(cache, "cache"\)\n(?:      \.\w+\(.*\)\n)*?      \.verify\(\);\n')
Lint = Callable[..., Report]


def kernel_files(change: Callable[[str], str]) -> dict[str, str]:
    """The C++ and CUDA files with every matcher of a conv state changed, and a declared census."""
    files = {"nosync-lint.toml": CENSUS}
    changed = 0
    for path in sorted(path for part in ("include", "kernels") for path in (FOLDER / part).rglob("*.*")):
        text = path.read_text()
        sites = STATE.findall(text)
        changed += len(sites)
        files[f"reference_allocator/{path.relative_to(FOLDER)}"] = STATE.sub(lambda match: change(match[0]), text)
    assert changed == 7
    return files


def found(report: Report) -> list[str]:
    return sorted(finding.code for finding in report.findings)


def test_the_kernels_are_clean_and_counted(lint: Lint) -> None:
    """S2e: seven sites, and a declared census that says so."""
    report = lint(kernel_files(lambda chain: chain), heat="any")
    assert found(report) == []
    for name in ("update_sconv_cache", "causal_conv1d", "ar_fused_decode"):
        assert (FOLDER / "kernels" / f"{name}.cuh").is_file()


def test_a_chain_without_its_stride_list_is_too_strict(lint: Lint) -> None:
    report = lint(kernel_files(lambda chain: chain.replace("      .strides({any, any, 1})\n", "")), heat="any")
    assert found(report) == ["NSL601"] * 7


def test_a_chain_with_a_free_channel_stride_is_too_permissive(lint: Lint) -> None:
    report = lint(kernel_files(lambda chain: chain.replace("{any, any, 1}", "{any, any, any}")), heat="any")
    assert found(report) == ["NSL602"] * 7


def test_a_chain_without_a_type_is_too_permissive(lint: Lint) -> None:
    report = lint(kernel_files(lambda chain: chain.replace("      .dtype({BF16})\n", "")), heat="any")
    assert found(report) == ["NSL602"] * 7


def test_a_lost_chain_is_missed_by_the_census_and_by_the_launch(lint: Lint) -> None:
    report = lint(kernel_files(lambda chain: ""), heat="any")
    assert found(report) == ["NSL603"] * 7 + ["NSL604"]


OPTIONS = "      .strides({any, any, 1})\n      .dtype({BF16})\n"
HELPERS = {
    "a function that returns a chain": (
        "inline Match state_of(const TensorView& state, const char* name) {\n"
        "  return Match(state, name)\n      .shape({any, any, any})\nOPTIONS;\n}\n",
        '  state_of(cache, "cache")\nREST',
    ),
    "a function that adds to a matcher": (
        "inline void demand_state(Match& match) {\n  match\nOPTIONS;\n}\n",
        '  Match state(cache, "cache");\n  state.shape({any, history, channels});\n  demand_state(state);\n  state\nREST',
    ),
    "a function that adds and gives back": (
        "inline Match& demand_state(Match& match) {\n  return match\nOPTIONS;\n}\n",
        '  demand_state(Match(cache, "cache").shape({any, history, channels}))\nREST',
    ),
    "one over another": (
        "inline Match of(const TensorView& state) {\n  return Match(state, \"state\")\n      .shape({any, any, any});\n}\n"
        "inline Match state_of(const TensorView& state) {\n  return of(state)\nOPTIONS;\n}\n",
        "  auto state = state_of(cache);\n  state\nREST",
    ),
    "a function that matches": (
        "inline void match_state(const TensorView& state) {\n"
        '  Match(state, "state")\n      .shape({any, any, any})\nOPTIONS\n      .verify();\n}\n',
        "  match_state(cache);\n",
    ),
    "a lambda that returns a chain": (
        "",
        "  const auto state_of = [&](const TensorView& state) {\n"
        '    return Match(state, "state")\n      .shape({any, history, channels})\nOPTIONS;\n  };\n  state_of(cache)\nREST',
    ),
    "a lambda that adds": (
        "",
        "  const auto demand = [&](Match& match) {\n    match\nOPTIONS;\n  };\n"
        '  Match state(cache, "cache");\n  state.shape({any, history, channels});\n  demand(state);\n  state\nREST',
    ),
}  # fmt: skip


def helped(helper: str, use: str, options: str) -> dict[str, str]:
    """The kernels with what the matchers of conv states share in a helper."""

    def change(chain: str) -> str:
        rest = "".join(line for line in chain.splitlines(True)[2:] if line not in OPTIONS)
        return use.replace("OPTIONS", options.rstrip()).replace("REST", rest)

    files = kernel_files(change)
    name = "reference_allocator/include/nosync/operands.hpp"
    text = helper.replace("OPTIONS", options.rstrip())
    assert files[name].count("inline Size history_size()") == 1
    files[name] = files[name].replace("inline Size history_size()", f"{text}inline Size history_size()")
    return files


@pytest.mark.parametrize(("helper", "use"), HELPERS.values(), ids=HELPERS.keys())
def test_what_a_helper_demands_is_known(lint: Lint, helper: str, use: str) -> None:
    files = helped(helper, use, OPTIONS)
    counted = "void match_state" not in helper  # which is one matcher, whoever calls it
    files["nosync-lint.toml"] = CENSUS if counted else CENSUS.replace("7", "0")
    assert found(lint(files, heat="any")) == []


@pytest.mark.parametrize(("helper", "use"), HELPERS.values(), ids=HELPERS.keys())
@pytest.mark.parametrize(
    ("option", "code"), [(".strides({any, any, 1})", "NSL601"), (".dtype({BF16})", "NSL602")], ids=["strides", "dtype"]
)
def test_what_a_helper_forgets_is_found(lint: Lint, helper: str, use: str, option: str, code: str) -> None:
    files = helped(helper, use, OPTIONS.replace(f"      {option}\n", ""))
    files["nosync-lint.toml"] = ""
    assert found(lint(files, heat="any")) == [code] * 7


@pytest.mark.parametrize("matches", [6, 8])
def test_the_declared_count_is_exact(lint: Lint, matches: int) -> None:
    files = kernel_files(lambda chain: chain)
    files["nosync-lint.toml"] = CENSUS.replace("7", str(matches))
    assert found(lint(files, heat="any")) == ["NSL604"]
