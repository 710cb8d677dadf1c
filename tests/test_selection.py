"""Which rules run, how severe they are, what a project says of single ones, and of which files they say nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from nosync_lint import cli, registry, selection
from nosync_lint.config import ConfigError, FileIgnore, RuleTable, Settings
from nosync_lint.finding import Confidence, Severity
from nosync_lint.registry import find, rules
from nosync_lint.rule import Judgement, Option, Retired, Rule, Status
from nosync_lint.selection import FileIgnores, check_names, select, told_names

FLAGGED = (
    "import torch\n\n\ndef step(ids: torch.LongTensor):  # nosync-lint: hot\n    return torch.unique(ids.cuda())\n"
)
Capture = pytest.CaptureFixture[str]


def codes(settings: Settings) -> set[str]:
    return {rule.code for rule in select(settings)}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with the same defect in two folders; the working directory."""
    for name in ("serve/a.py", "tests/b.py"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(FLAGGED)
    (tmp_path / "nosync-lint.toml").touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def found(capsys: Capture, *arguments: str) -> tuple[int, list[str]]:
    code = cli.main(["check", "--no-cache", "-j", "1", "--output-format", "json", "--select", "NSL301", *arguments])
    report = json.loads(capsys.readouterr().out)
    return code, [f"{one['filename']} {one['severity']}" for one in report["findings"]]


# Which rules


def test_by_default_all_stable_rules_run_but_those_that_are_asked_for_by_name() -> None:
    assert codes(Settings()) == {rule.code for rule in rules() if rule.default and rule.status is not Status.PREVIEW}
    assert {"NSL106", "NSL209"} & codes(Settings()) == set()
    assert "NSL106" in codes(Settings(extend_select=("NSL106",)))


def test_the_closer_name_wins_and_of_equals_ignore() -> None:
    assert "NSL201" in codes(Settings(ignore=("NSL2",), extend_select=("item-read",)))
    assert "NSL202" not in codes(Settings(ignore=("NSL2",), extend_select=("item-read",)))
    assert "NSL201" not in codes(Settings(select=("NSL2",), ignore=("NSL201",)))
    assert "NSL201" not in codes(Settings(select=("NSL201",), extend_ignore=("item-read",)))
    assert codes(Settings(select=("NSL2",), extend_ignore=("NSL20",))) == {
        "NSL000",
        "NSL210",
        "NSL211",
        "NSL212",
        "NSL213",
    }


def test_files_that_cannot_be_read_are_told_unless_that_is_ignored() -> None:
    assert "NSL000" in codes(Settings(select=("NSL101",)))
    assert "NSL000" not in codes(Settings(ignore=("NSL000",)))


def test_select_on_the_command_line_chooses_anew(project: Path, capsys: Capture) -> None:
    (project / "nosync-lint.toml").write_text('ignore = ["NSL301"]\n')
    assert found(capsys)[0] == 1
    assert found(capsys, "--extend-ignore", "NSL301") == (0, [])


@pytest.mark.parametrize(
    ("text", "told"),
    {
        'extend-ignore = ["item-raed"]': "no rule is called `item-raed`, did you mean `item-read`?",
        '[per-file-ignores]\n"a" = ["NSL9"]': "no rule is called `NSL9`",
        '\n[rules.item-raed]\nseverity = "info"': ":2: [rules.item-raed]: no rule is called `item-raed`, did you mean",
        '[rules.NSL2]\nseverity = "info"': "[rules.NSL2]: no rule is called `NSL2`; name one rule by its code or slug",
        "[rules.NSL002]\nleast-word = 3": "NSL002 has no option `least-word`, did you mean `least-words`?",
        "[rules.NSL101]\nzzz = 3": "NSL101 has no option `zzz`; it has `severity`",
        '[rules.NSL002]\nleast-words = "x"': "`least-words` must be a number from 0, not 'x'",
    }.items(),
)
def test_a_wrong_name_in_the_configuration_is_told(project: Path, capsys: Capture, text: str, told: str) -> None:
    (project / "nosync-lint.toml").write_text(text)
    assert cli.main(["check", "."]) == 2
    error = capsys.readouterr().err
    assert told in error
    assert error.startswith(f"nosync-lint: error: {project / 'nosync-lint.toml'}:")


def test_a_wrong_name_on_the_command_line_names_no_file(project: Path, capsys: Capture) -> None:
    (project / "nosync-lint.toml").write_text('extend-select = ["NSL1"]\n')
    for arguments in (["--extend-select", "NSL9"], ["--per-file-ignores", "a:NSL9"]):
        assert cli.main(["check", *arguments]) == 2
        assert capsys.readouterr().err.startswith("nosync-lint: error: no rule is called `NSL9`")
    assert cli.main(["check", "--per-file-ignores", "NSL1"]) == 2
    assert "--per-file-ignores takes GLOB:RULE" in capsys.readouterr().err


# Severities and options


def test_a_severity_is_the_project_s_and_decides_the_exit_code(project: Path, capsys: Capture) -> None:
    assert found(capsys, "serve") == (1, ["serve/a.py error"])
    (project / "nosync-lint.toml").write_text('[rules.dedup-on-device]\nseverity = "warning"\n')
    assert found(capsys, "serve") == (1, ["serve/a.py warning"])
    assert found(capsys, "serve", "--fail-on", "error") == (0, ["serve/a.py warning"])
    assert found(capsys, "serve", "--config", 'fail-on = "error"')[0] == 0
    assert found(capsys, "serve", "--config", 'fail-on = "error"', "--error-on-warning")[0] == 1
    assert found(capsys, "serve", "--config", 'rules.NSL301.severity = "info"') == (0, ["serve/a.py info"])
    assert found(capsys, "serve", "--config", 'rules.NSL301.severity = "info"', "--fail-on", "info")[0] == 1
    assert found(capsys, "serve", "--exit-zero")[0] == 0


def test_the_rule_itself_keeps_its_severity() -> None:
    (rule,) = [one for one in select(Settings(rules=(RuleTable("item-read", "info"),))) if one.code == "NSL201"]
    assert rule.severity is Severity.INFO
    assert find("NSL201").severity is Severity.ERROR  # type: ignore[union-attr]


def test_a_reason_may_have_to_be_longer(project: Path, capsys: Capture) -> None:
    text = FLAGGED.replace("cuda())", "cuda())  # nosync-lint: ignore[NSL301] for now")
    (project / "serve" / "a.py").write_text(text)
    assert cli.main(["check", "--no-cache", "serve"]) == 0
    assert cli.main(["check", "--no-cache", "serve", "--config", "rules.NSL002.least-words = 3"]) == 1
    assert "NSL002 unexplained-suppression this reason is 2 words long" in capsys.readouterr().out


def test_calls_whose_text_is_worth_the_wait_may_be_named(project: Path, capsys: Capture) -> None:
    (project / "serve" / "a.py").write_text(
        "import logging\nimport torch\nlog = logging.getLogger()\n\n\ndef step(ids: torch.LongTensor):  # nosync-lint: hot\n"
        "    log.info('%s', ids.cuda())\n    log.warning('%s', ids.cuda())\n"
    )
    arguments = ["check", "--no-cache", "serve", "--select", "NSL208"]
    assert cli.main(arguments) == 1
    assert capsys.readouterr().out.count(": NSL208 ") == 2
    option = ["--config", 'rules.NSL208.ignore-calls = ["*.info"]']
    assert cli.main([*arguments, *option]) == 1
    out = capsys.readouterr().out
    assert out.count(": NSL208 ") == 1
    assert "serve/a.py:8:" in out
    assert cli.main([*arguments, *option, "--explain", "serve/a.py:7"]) == 0
    assert "is hidden: the options of its rule leave it out" in capsys.readouterr().out


# Files


def test_rules_say_nothing_of_some_files(project: Path, capsys: Capture) -> None:
    (project / "nosync-lint.toml").write_text('[per-file-ignores]\n"tests/**" = ["NSL3"]\n')
    assert found(capsys) == (1, ["serve/a.py error"])
    assert found(capsys, "--per-file-ignores", "serve:dedup-on-device") == (0, [])
    assert cli.main(["check", "--no-cache", "."]) == 1
    assert "hidden: 1 ignored" in capsys.readouterr().out


def test_a_negated_glob_means_all_other_files(project: Path, capsys: Capture) -> None:
    assert found(capsys, "--per-file-ignores", "!serve/*:NSL301") == (1, ["serve/a.py error"])


def test_globs_count_from_the_configuration_and_from_here(project: Path) -> None:
    rule = next(one for one in rules() if one.code == "NSL301")
    ignores = FileIgnores(Settings(per_file_ignores=(FileIgnore("serve/*.py", ("NSL3",)),), path=project / "x.toml"))
    assert [ignores.cover(rule, name) for name in ("serve/a.py", "a.py", "tests/b.py", "../serve/a.py")] == [
        True, False, False, False,
    ]  # fmt: skip
    assert not ignores.cover(next(one for one in rules() if one.code == "NSL101"), "serve/a.py")


def test_an_ignored_file_is_explained(project: Path, capsys: Capture) -> None:
    (project / "nosync-lint.toml").write_text('[per-file-ignores]\n"tests/**" = ["NSL3"]\n')
    assert cli.main(["check", "--no-cache", "--explain", "tests/b.py:5"]) == 0
    assert "is hidden: `per-file-ignores` names its rule for this file" in capsys.readouterr().out


# The life of a rule


class Fresh(Rule):
    code, since, severity, sites = "NSL199", "9.0.0", Severity.ERROR, ("bad-file",)
    status = Status.PREVIEW
    options = (Option("limit", 3, "how many"),)

    def judge(self, site: object, program: object) -> Iterator[Judgement]:
        yield Judgement("m", "c", Confidence.CERTAIN)


class Fading(Fresh):
    code, status = "NSL198", Status.DEPRECATED


@pytest.fixture
def lives(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule in preview, one that is deprecated, one with a former name, and one that is gone."""
    with_more = (*rules(), Fresh(), Fading())
    for module in (registry, selection):
        monkeypatch.setattr(module, "rules", lambda: with_more)
    gone = (
        Retired("NSL197", "item-fetch", "9.1.0", "it is named like the others now", now="NSL201"),
        Retired("NSL196", "lost-cause", "9.2.0", "torch does not wait there any more"),
    )
    monkeypatch.setattr(registry, "retired", lambda: gone)


def test_a_rule_in_preview_runs_when_preview_is_on(lives: None) -> None:
    assert "NSL199" not in codes(Settings(select=("NSL1",)))
    assert "NSL199" in codes(Settings(preview=True))
    chosen = Settings(select=("fresh",))
    assert "NSL199" not in codes(chosen)
    assert list(told_names(chosen)) == ["`fresh` is selected and not asked: it is in preview; set `preview = true`"]
    assert list(told_names(Settings(select=("fresh",), preview=True))) == []


def test_a_deprecated_rule_runs_and_says_so_where_it_is_named(lives: None) -> None:
    assert "NSL198" in codes(Settings(select=("fading",)))
    assert list(told_names(Settings(extend_select=("NSL198",)))) == [
        "`NSL198` is deprecated: see `nosync-lint rule NSL198`"
    ]
    assert list(told_names(Settings(select=("NSL1",)))) == []


def test_a_former_name_means_the_rule_that_took_its_place_and_says_so(lives: None) -> None:
    for name in ("NSL197", "item-fetch"):
        settings = Settings(select=(name,), rules=(RuleTable(name, "info"),))
        check_names(settings)
        assert {rule.code: rule.severity for rule in select(settings)}["NSL201"] is Severity.INFO
        (told,) = told_names(settings)
        assert told == f"`{name}` is called `NSL201` since 9.1.0: it is named like the others now"


def test_a_name_of_a_removed_rule_is_an_error_that_says_why(lives: None) -> None:
    with pytest.raises(ConfigError, match=r"`NSL196` was removed in 9\.2\.0: torch does not wait there any more"):
        check_names(Settings(ignore=("NSL196",)))


def test_no_rule_has_the_name_of_a_retired_one() -> None:
    names = {word for rule in rules() for word in (rule.code, rule.slug())}
    for one in registry.retired():
        assert not {one.code, one.slug} & names
        assert one.why
        assert not one.now or find(one.now) is not None


def test_an_option_has_a_default_and_is_described() -> None:
    assert Fresh().option("limit") == 3
    assert Fresh().configured(None, {"limit": 4}).option("limit") == 4
    for rule in rules():
        for one in rule.options:
            assert one.about
            assert one.name not in ("severity",)
            assert rule.option(one.name) == one.default
