"""Checks the defects that started the project: found in the release that had them, gone in the one that fixed them.

usage: python -m benchmarks.seed_defects

Fetches sglang 0.5.18 and 0.5.19, lints `sglang/srt` and `sglang/kernels` with default settings (and once for every
heat, and once for a torch that cured the scalar stores), and compares lines. Prints what deviates, then exits 1.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from benchmarks.releases import fetch

PATHS = ["sglang/srt", "sglang/kernels"]
POOL = "sglang/srt/mem_cache/"
CONV = "sglang/kernels/jit/csrc/inkling/"
STORES = [f"NSL101 {POOL}multi_ended_allocator.py:{row}" for row in (1007, 1033, 1034, 1677)]
STORES += [f"NSL101 {POOL}allocator/swa.py:364", f"NSL101 {POOL}swa_radix_cache.py:1303"]
STORES += [f"NSL101 {POOL}unified_cache/components/swa_component.py:1124"]
SLICES = [f"NSL101 {POOL}multi_ended_allocator.py:{row}" for row in (1151, 1156)]
CLEARED = [f"NSL101 {POOL}multi_ended_allocator.py:{row}" for row in (277, 278, 280, 281)]
DEDUPS = [f"NSL301 {POOL}multi_ended_allocator.py:{row}" for row in (997, 1029)]
DROP = [f"NSL502 {POOL}allocator/base.py:131"]
LOST = [f"NSL501 {POOL}multi_ended_allocator.py:{row}" for row in (102, 1731, 2050)]
OTHERS = [
    f"NSL501 {POOL}allocator/{place}" for place in ("swa.py:20", "swa.py:416", "hisparse.py:15", "hisparse.py:276")
]
LATER = [
    f"NSL501 {POOL}allocator/{place}" for place in ("swa.py:20", "swa.py:448", "hisparse.py:15", "hisparse.py:270")
]
MATCHES: dict[str, tuple[int, ...]] = {
    "update_sconv_cache": (109,),
    "causal_conv1d": (178,),
    "draft_extend_sconv": (117,),
}
MATCHES |= {"fused_decode_update": (152,), "gather_scatter_sconv": (78,), "inkling_ar_fused_decode": (630, 755)}
STRICT = [f"NSL601 {CONV}{name}.cuh:{row}" for name, rows in MATCHES.items() for row in rows]
ALLOWED: dict[str, tuple[int, ...]] = {
    "causal_conv1d": (180,),
    "gather_scatter_sconv": (79, 81),
    "inkling_ar_fused_decode": (773,),
}
WEAKER = [f"NSL601 {CONV}{name}.cuh:{row}" for name, rows in ALLOWED.items() for row in rows]
MASKS: dict[str, tuple[int, ...]] = {
    "update_sconv_cache": (111,),
    "causal_conv1d": (180,),
    "fused_decode_update": (154,),
}
MASKS |= {"gather_scatter_sconv": (80,), "inkling_ar_fused_decode": (632, 757)}
LOOSE = [f"NSL602 {CONV}{name}.cuh:{row}" for name, rows in MASKS.items() for row in rows]
OTHER_PLATFORM = [f"NSL101 {POOL}allocator/swa.py:352"]


def lint(folder: Path, *options: str) -> set[str]:
    """`CODE file:row` of every finding."""
    command = [sys.executable, "-m", "nosync_lint", "check", *PATHS, *options, "--output-format", "json"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(done.stderr)
    found = json.loads(done.stdout)["findings"]
    return {f"{one['code']} {one['filename']}:{one['location']['row']}" for one in found}


def deviations(title: str, found: set[str], present: list[str], absent: list[str]) -> list[str]:
    wrong = [f"missed {one}" for one in present if one not in found] + [
        f"false {one}" for one in absent if one in found
    ]
    print(f"{title}: {len(present)} expected, {len(absent)} must be silent, {len(wrong)} deviate")
    return [f"{title}: {one}" for one in wrong]


def main() -> int:
    before, after = fetch("sglang==0.5.18"), fetch("sglang==0.5.19")
    found = lint(before)
    wrong = deviations("0.5.18", found, STORES + DEDUPS + DROP + LOST + OTHERS + STRICT + LOOSE, SLICES + CLEARED)
    stray = {one for one in found if one.startswith(f"NSL601 {CONV}")} - {*STRICT, *WEAKER}
    wrong += [f"0.5.18: false {one}" for one in sorted(stray)]
    wrong += deviations("0.5.18 --heat any", lint(before, "--heat", "any"), STORES + CLEARED, SLICES)
    wrong += deviations("0.5.18 --target-torch 2.15", lint(before, "--target-torch", "2.15"), DEDUPS, STORES)
    later = lint(after)
    gone = STORES + LOST + STRICT + OTHER_PLATFORM
    wrong += deviations("0.5.19", later, LATER, gone)
    stores = {one for one in later if one.startswith(f"NSL101 {POOL}multi_ended_allocator.py")}
    wrong += [f"0.5.19: false {one}" for one in sorted(stores)]
    for one in wrong:
        print(f"  {one}")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
