"""Sessions of a language client with a real server."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

HOT = "import torch\n\n\ndef step(t: torch.Tensor):  # nosync-lint: hot\n    return t.unique()\n"
QUIET = HOT.replace("t.unique()", "t.sort()")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "nosync-lint.toml").touch()
    (folder / "step.py").write_text(HOT)
    return folder


def codes(diagnostics: list[dict[str, Any]]) -> list[str]:
    return [one["code"] for one in diagnostics]


def test_a_session_from_opening_to_a_clean_buffer(connect: Any, project: Path) -> None:
    client, uri = connect(project), (project / "step.py").as_uri()
    assert client.server["serverInfo"]["name"] == "nosync-lint"

    (found,) = client.open(uri, HOT)
    assert (found["code"], found["source"], found["severity"]) == ("NSL301", "nosync-lint", 1)
    assert found["range"] == {"start": {"line": 4, "character": 11}, "end": {"line": 4, "character": 21}}
    assert "waits for the stream" in found["message"]

    after = client.change(uri, QUIET)
    assert client.diagnostics(uri, after) == []

    after = client.change(uri, HOT.replace("return", "return "))
    (found,) = client.diagnostics(uri, after)
    assert found["range"]["start"] == {"line": 4, "character": 12}

    (action,) = client.actions(uri, found["range"], ["quickfix"])
    assert action["diagnostics"][0]["code"] == "NSL301"
    after = client.apply(action)
    assert client.texts[uri] == HOT.replace(
        "return t.unique()", "return  t.unique()  # nosync-lint: ignore[dedup-on-device]"
    )
    assert codes(client.diagnostics(uri, after)) == ["NSL002"]  # it wants to be told why

    after = client.change(uri, client.texts[uri].rstrip() + " the count is read anyway\n")
    assert client.diagnostics(uri, after) == []
    assert (project / "step.py").read_text() == HOT
    assert client.end() == 0


def test_the_chain_is_told_as_related_places(connect: Any, project: Path) -> None:
    (project / "work.py").write_text("import torch\n\n\ndef work(t: torch.Tensor):\n    return t.unique()\n")
    root = "from work import work\n\n\ndef step(t):  # nosync-lint: hot\n    return work(t)\n"
    (project / "step.py").write_text(root)
    client, uri = connect(project), (project / "work.py").as_uri()
    (found,) = client.open(uri, (project / "work.py").read_text())
    places = [
        (one["location"]["uri"], one["location"]["range"]["start"]["line"]) for one in found["relatedInformation"]
    ]
    assert ((project / "step.py").as_uri(), 3) in places
    assert (uri, 4) in places


def test_related_places_are_kept_from_clients_that_cannot_show_them(connect: Any, project: Path) -> None:
    client, uri = connect(project, capabilities={}), (project / "step.py").as_uri()
    (found,) = client.open(uri, HOT)
    assert "relatedInformation" not in found


def test_the_text_of_an_open_document_counts_for_other_files(connect: Any, project: Path) -> None:
    work = "import torch\n\n\ndef work(t: torch.Tensor):\n    return t.unique()\n"
    (project / "work.py").write_text(work)
    caller = "from work import work\n\n\ndef step(t):\n    return work(t)\n"
    (project / "step.py").write_text(caller)
    client = connect(project)
    lib, main = (project / "work.py").as_uri(), (project / "step.py").as_uri()
    client.open(lib, work)
    client.open(main, caller)
    after = client.change(main, caller.replace("def step(t):", "def step(t):  # nosync-lint: hot"))
    (found,) = client.diagnostics(lib, after)
    assert "hot" in found["message"]


def test_closing_a_document_clears_it_and_reads_the_disk_again(connect: Any, project: Path) -> None:
    work = "import torch\n\n\ndef work(t: torch.Tensor):\n    return t.unique()\n"
    (project / "work.py").write_text(work)
    (project / "step.py").write_text("from work import work\n\n\ndef step(t):\n    return work(t)\n")
    client = connect(project)
    lib, main = (project / "work.py").as_uri(), (project / "step.py").as_uri()
    client.open(main, "from work import work\n\n\ndef step(t):  # nosync-lint: hot\n    return work(t)\n")
    assert [one for one in client.open(lib, work) if ", hot)" in one["message"]]
    after = len(client.received)
    client.close(main)
    client.wait_for(
        lambda one: (
            one.get("method") == "textDocument/publishDiagnostics"
            and one["params"]["uri"] == main
            and one["params"]["diagnostics"] == []
        ),
        after,
    )
    (found,) = client.diagnostics(lib, after)
    assert ", unreached)" in found["message"]  # on disk nothing is hot, so that everything is shown


def test_a_stale_check_is_ended_by_a_change(connect: Any, project: Path) -> None:
    client, uri = connect(project), (project / "step.py").as_uri()
    client.open(uri, QUIET)
    for _ in range(5):
        client.change(uri, HOT)
        after = client.change(uri, QUIET)
    assert client.diagnostics(uri, after) == []
    published = [one["params"] for one in client.received if one.get("method") == "textDocument/publishDiagnostics"]
    assert [one["version"] for one in published] == [1, 11]


@pytest.mark.parametrize(("encoding", "column"), [("utf-16", 18), ("utf-8", 21), ("utf-32", 17)])
def test_columns_are_counted_as_the_client_asks(connect: Any, project: Path, encoding: str, column: int) -> None:
    text = HOT.replace("return t.unique()", 'return "\U0001f600é", t.unique()')
    capabilities = {"general": {"positionEncodings": [encoding]}}
    client, uri = connect(project, capabilities=capabilities), (project / "step.py").as_uri()
    assert client.server["capabilities"]["positionEncoding"] == encoding
    (found,) = client.open(uri, text)
    assert found["range"]["start"] == {"line": 4, "character": column}


def test_a_document_with_windows_line_ends_and_a_form_feed_keeps_its_rows(connect: Any, project: Path) -> None:
    text = HOT.replace("def step", "\x0c\ndef step").replace("\n", "\r\n")
    client, uri = connect(project), (project / "step.py").as_uri()
    (found,) = client.open(uri, text)
    assert found["range"]["start"] == {"line": 5, "character": 11}


def test_a_file_that_is_not_on_disk_yet_is_checked(connect: Any, project: Path) -> None:
    client, uri = connect(project), (project / "new" / "module.py").as_uri()
    assert codes(client.open(uri, HOT)) == ["NSL301"]


def test_a_document_without_a_file_is_checked_in_the_open_folder(connect: Any, project: Path) -> None:
    client = connect(project)
    text = "from step import step\n\n\ndef run(t):  # nosync-lint: hot\n    return step(t).item()\n"
    (found,) = client.open("untitled:Untitled-1", text)  # what `step` gives back is known from its file
    assert found["code"] == "NSL201"


def test_a_document_of_no_project_is_checked_by_itself(connect: Any, tmp_path: Path) -> None:
    loose = tmp_path / "loose"
    loose.mkdir()
    (loose / "other.py").write_text("def broken(:\n")
    client, uri = connect(cwd=loose), (loose / "step.py").as_uri()
    assert codes(client.open(uri, HOT)) == ["NSL301"]
    assert codes(client.open("untitled:Untitled-1", HOT)) == ["NSL301"]
    assert os.listdir(loose) == ["other.py"]  # no cache either


def test_several_folders_have_their_own_configuration(connect: Any, project: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "nosync-lint.toml").write_text('ignore = ["dedup-on-device"]\n')
    client = connect(project, other)
    assert codes(client.open((project / "step.py").as_uri(), HOT)) == ["NSL301"]
    assert codes(client.open((other / "step.py").as_uri(), HOT)) == []


def test_a_folder_without_configuration_is_a_project(connect: Any, project: Path) -> None:
    (project / "nosync-lint.toml").unlink()
    client = connect(project)
    assert codes(client.open((project / "step.py").as_uri(), HOT)) == ["NSL301"]


def test_what_lies_in_an_environment_is_left_alone(connect: Any, project: Path) -> None:
    client = connect(project)
    client.open_quietly((project / ".venv" / "lib" / "module.py").as_uri(), HOT)
    assert codes(client.open((project / "step.py").as_uri(), HOT)) == ["NSL301"]
    published = {
        one["params"]["uri"] for one in client.received if one.get("method", "").endswith("publishDiagnostics")
    }
    assert published == {(project / "step.py").as_uri()}


def test_a_broken_configuration_is_told_and_survived(connect: Any, project: Path) -> None:
    config = project / "nosync-lint.toml"
    config.write_text("heart = 'any'\n")
    client, uri = connect(project), (project / "step.py").as_uri()
    client.open_quietly(uri, HOT)
    told = client.wait_for(lambda one: one.get("method") == "window/showMessage")
    assert "unknown key `heart`, did you mean `heat`?" in told["params"]["message"]
    client.change(uri, HOT + "\n")
    config.write_text('heat = "any"\n')
    after = len(client.received)
    client.notify("workspace/didChangeWatchedFiles", {"changes": [{"uri": config.as_uri(), "type": 2}]})
    assert codes(client.diagnostics(uri, after)) == ["NSL301"]
    assert len(client.shown()) == 1


def test_a_change_on_disk_is_seen(connect: Any, project: Path) -> None:
    work = "import torch\n\n\ndef work(t: torch.Tensor):\n    return t.unique()\n"
    client, uri = connect(project), (project / "work.py").as_uri()
    (project / "step.py").write_text("from work import work\n\n\ndef step(t):\n    return work(t)\n")
    client.open(uri, work)
    watched = client.wait_for(lambda one: one.get("method") == "client/registerCapability")
    (registration,) = watched["params"]["registrations"]
    assert registration["method"] == "workspace/didChangeWatchedFiles"
    (project / "step.py").write_text(
        "from work import work\n\n\ndef step(t):  # nosync-lint: hot\n    return work(t)\n"
    )
    after = len(client.received)
    client.notify("workspace/didChangeWatchedFiles", {"changes": [{"uri": (project / "step.py").as_uri(), "type": 2}]})
    (found,) = client.diagnostics(uri, after)
    assert ", hot)" in found["message"]


def test_a_document_that_cannot_be_parsed_is_a_diagnostic_without_an_ignore(connect: Any, project: Path) -> None:
    client, uri = connect(project), (project / "step.py").as_uri()
    (found,) = client.open(uri, HOT + "def (\n")
    assert found["code"] == "NSL000"
    assert found["range"]["start"]["line"] == 5
    assert client.actions(uri, found["range"]) == []


def test_hovering_explains_the_rule_and_the_operand(connect: Any, project: Path) -> None:
    text = (
        "import torch\n\n\nclass Pool:\n    def __init__(self, size, device):\n"
        "        self.free_pages = torch.arange(size, device=device)\n\n"
        "    def free(self, pages: torch.Tensor):  # nosync-lint: hot\n        return self.free_pages.unique()\n"
    )
    client, uri = connect(project), (project / "step.py").as_uri()
    assert codes(client.open(uri, text)) == ["NSL301"]
    shown = client.hover(uri, 8, 20)
    assert "**NSL301 dedup-on-device**" in shown
    assert "*Why it matters*" in shown
    assert "De-duplicating" not in shown  # the summary says no more than the message
    assert "receiver `self.free_pages` is a 1-dim tensor on a device that is given as parameter" in shown
    assert "  - row 6 of step.py: `self.free_pages = torch.arange(size, device=device)`" in shown
    assert "The line is **hot**" in shown
    assert client.hover(uri, 3, 2) == ""


def test_a_cancelled_request_is_answered_as_such_and_the_next_one_is_served(connect: Any, project: Path) -> None:
    client, uri = connect(project), (project / "step.py").as_uri()
    client.open(uri, HOT)
    client.change(uri, HOT + "\n")
    asked = {"textDocument": {"uri": uri}, "position": {"line": 4, "character": 14}}
    number = client.ask("textDocument/hover", asked)
    client.notify("$/cancelRequest", {"id": number})
    assert client.answer(number)["error"]["code"] == -32800
    assert "NSL301" in client.hover(uri, 4, 14)


def test_actions_for_a_text_that_has_changed_are_not_offered(connect: Any, project: Path) -> None:
    client, uri = connect(project), (project / "step.py").as_uri()
    (found,) = client.open(uri, HOT)
    client.change(uri, "\n" + HOT)
    assert client.actions(uri, found["range"]) == []


def test_the_exit_code_tells_whether_the_client_said_goodbye(connect: Any, project: Path) -> None:
    client = connect(project)
    client.notify("exit", None)
    assert client.process.wait(60) == 1


NOISY = '''
"""A rule that prints, and fails."""

from nosync_lint.finding import Severity
from nosync_lint.rule import Rule

print("loaded", flush=True)


class NoisyRun(Rule):
    code, since, severity, sites = "HSE101", "1.0.0", Severity.INFO, ("call",)

    def judge(self, site, program):
        print("judged", flush=True)
        raise ValueError("no opinion")
        yield
'''


def test_a_rule_that_prints_and_fails_is_told_and_harms_nothing(connect: Any, project: Path, tmp_path: Path) -> None:
    home = tmp_path / "site" / "noisy-1.0.dist-info"
    home.mkdir(parents=True)
    (home / "METADATA").write_text("Metadata-Version: 2.1\nName: noisy\nVersion: 1.0\n")
    (home / "entry_points.txt").write_text("[nosync_lint.rules]\nnoisy = noisy_run:NoisyRun\n")
    (home.parent / "noisy_run.py").write_text(NOISY.lstrip())
    client, uri = connect(project, path=home.parent), (project / "step.py").as_uri()
    assert codes(client.open(uri, HOT)) == ["NSL301"]
    assert client.shown() == ["nosync-lint: rule HSE101 noisy-run crashed at step.py:5: ValueError: no opinion"]
    assert "dedup-on-device" in client.hover(uri, 4, 14)


def test_a_folder_that_went_away_is_told(connect: Any, project: Path) -> None:
    client, uri = connect(project), (project / "step.py").as_uri()
    client.open(uri, QUIET)
    shutil.rmtree(project)
    client.change(uri, HOT)
    told = client.wait_for(lambda one: one.get("method") == "window/showMessage")
    assert told["params"]["message"] == f"nosync-lint: {project}: cannot be checked: No such file or directory"
