"""`python -m nosync_lint`."""

from nosync_lint.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
