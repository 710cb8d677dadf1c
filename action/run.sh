#!/usr/bin/env bash
# What action.yml does. Its inputs come as ACTION_... and are never part of a command line. Runs in bash 3.2 as well.
set -euo pipefail

fail() {
  echo "::error title=nosync-lint::$1"
  exit 2
}

case $ACTION_SARIF in
  true | false) ;;
  *) fail "sarif is 'true' or 'false', not '$ACTION_SARIF'" ;;
esac
case $ACTION_FAIL_ON in
  warning | error | never) ;;
  *) fail "fail-on is 'warning', 'error' or 'never', not '$ACTION_FAIL_ON'" ;;
esac

python=$(command -v python3 || command -v python) || fail "there is no Python: put actions/setup-python before this step"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
  fail "Python 3.11 or newer is needed: put actions/setup-python before this step"

home=$RUNNER_TEMP/nosync-lint
wanted=${ACTION_VERSION:+nosync-lint==$ACTION_VERSION}
wanted=${wanted:-$GITHUB_ACTION_PATH}
tool() {
  if [ -d "$home/venv/Scripts" ]; then "$home/venv/Scripts/python" "$@"; else "$home/venv/bin/python" "$@"; fi
}
if [ "$(cat "$home/installed" 2>/dev/null)" != "$wanted" ]; then # a job may use the action several times
  echo "::group::Install nosync-lint"
  rm -rf "$home"
  "$python" -m venv "$home/venv"
  tool -m pip install --quiet --disable-pip-version-check "$wanted"
  echo "$wanted" >"$home/installed"
  echo "::endgroup::"
fi

# The words of an input, as a shell would tell them apart, with nothing expanded.
words() {
  tool -c 'import shlex, sys; [print(word, end="\0") for word in shlex.split(sys.argv[1])]' "$2" >"$home/words" ||
    fail "$1 cannot be told apart into words: $2"
  while IFS= read -r -d '' word; do given+=("$word"); done <"$home/words"
}

report=$home/report.json
sarif=
given=(--quiet --output-format github --output-format json -o "$report")
if [ "$ACTION_SARIF" = true ]; then
  sarif=$home/nosync-lint.sarif
  given+=(--output-format sarif -o "$sarif")
fi
[ -z "$ACTION_BASELINE" ] || given+=(--baseline "$ACTION_BASELINE")
words args "$ACTION_ARGS"
given+=(--)
words paths "$ACTION_PATHS"

rm -f "$report" "$sarif"
code=0
tool -m nosync_lint check "${given[@]}" || code=$?

count='import json, sys
findings = json.load(open(sys.argv[1], encoding="utf-8"))["findings"]
print(len(findings), sum(one["severity"] == "error" for one in findings))'
found=0 errors=0
if [ -e "$report" ]; then # not so where the command was refused
  read -r found errors < <(tool -c "$count" "$report")
fi
[ -e "$sarif" ] || sarif=
{
  echo "findings=$found"
  echo "exit-code=$code"
  echo "sarif-file=$sarif"
} >>"$GITHUB_OUTPUT"

[ "$code" = 1 ] || exit "$code"
case $ACTION_FAIL_ON in
  never) exit 0 ;;
  error) [ "$errors" = 0 ] ;;
  *) exit 1 ;;
esac
