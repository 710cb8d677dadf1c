"""The linter judges every matcher of the kernels: silent on the tree as it is, not on a chain that lost something."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from nosync_lint.report import Report

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


@pytest.mark.parametrize("matches", [6, 8])
def test_the_declared_count_is_exact(lint: Lint, matches: int) -> None:
    files = kernel_files(lambda chain: chain)
    files["nosync-lint.toml"] = CENSUS.replace("7", str(matches))
    assert found(lint(files, heat="any")) == ["NSL604"]
