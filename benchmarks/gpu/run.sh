#!/usr/bin/env bash
# What only a GPU can tell, measured in one go, each part in less than four minutes.
#
# usage: benchmarks/gpu/run.sh [allocator|guard|all]
#
# Needs a GPU, the CUDA build of torch and nvcc; $PYTHON names the interpreter that has torch.
# Results are printed, the short table last, and written as JSON to $OUT, or build/gpu. Exits 0 if all targets are met, 1
# if one is not, 2 if something is missing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

python=${PYTHON:-python3}
limit=240 # seconds

torch() {
  "$python" -c 'import importlib.util, sys; sys.exit(importlib.util.find_spec("torch") is None)' || {
    echo "benchmarks/gpu/run.sh: $python has no torch"
    exit 2
  }
}

allocator() {
  PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}" timeout "$limit" "$python" -m benchmarks.gpu.allocator
}

guard() {
  PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}" timeout "$limit" "$python" -m benchmarks.gpu.guard
}

case "${1:-all}" in
  allocator | guard)
    torch
    "$1"
    ;;
  all)
    torch
    failed=0
    allocator || failed=$?
    guard || failed=$?
    exit "$failed"
    ;;
  *)
    echo "usage: benchmarks/gpu/run.sh [allocator|guard|all]" >&2
    exit 2
    ;;
esac
