"""`python -m nosync_lint`."""

import os
import sys

if __name__ == "__main__":
    sys.path[:] = [path for path in sys.path if path not in ("", os.getcwd())]  # the linted project is never imported
    from nosync_lint.cli import run_and_exit

    run_and_exit()
