"""Runs a script or a module against the CUDA build of torch without a GPU, as `python` would run it.

usage: python -m nosync_lint.guard.stub SCRIPT [ARG ...]
       python -m nosync_lint.guard.stub -m MODULE [ARG ...]
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from nosync_lint.guard import stub


def main(arguments: list[str]) -> None:
    module = arguments[0] if arguments else "--help"
    if module in ("-h", "--help") or arguments == ["-m"]:
        print((__doc__ or "").strip())
        raise SystemExit(0 if arguments and module != "-m" else 2)
    try:
        stub.load()
    except stub.StubError as error:
        raise SystemExit(f"nosync_lint.guard.stub: {error}") from error
    if module == "-m":
        sys.argv = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        return
    sys.argv = arguments
    sys.path[0] = str(Path(module).resolve().parent)
    runpy.run_path(module, run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
