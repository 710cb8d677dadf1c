"""A note where ruff, as it is configured, would remove our `# noqa` comments."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from nosync_lint.report import Report

NOQA = "import torch\n\ndef f(t: torch.Tensor):\n    t.cuda().item()  # noqa: NSL201\n"
REMOVES = {
    'lint.select = ["RUF"]': True,
    'select = ["E", "RUF102"]': True,
    '[lint]\nextend-select = ["RUF1"]': True,
    '[lint]\nselect = ["ALL"]': True,
    '[lint]\nselect = ["RUF"]\nexternal = ["NSL"]': False,
    '[lint]\nselect = ["RUF"]\nexternal = ["NSL201"]': True,
    '[lint]\nselect = ["RUF"]\nexternal = ["XYZ"]': True,
    '[lint]\nselect = ["RUF"]\nignore = ["RUF102"]': False,
    '[lint]\nselect = ["RUF102"]\nignore = ["RUF"]': True,
    '[lint]\nselect = ["ALL"]\nignore = ["RUF"]': False,
    '[lint]\nselect = ["E", "RUF001"]': False,
    "line-length = 90": False,
    "this is no TOML": False,
}


@pytest.mark.parametrize(("config", "noted"), REMOVES.items())
def test_a_note_tells_of_ruff(config: str, noted: bool, lint: Callable[..., Report]) -> None:
    notes = lint({"main.py": NOQA, "ruff.toml": config}).notes
    assert any("add `external" in note for note in notes) == noted


def test_the_settings_may_stand_in_pyproject(lint: Callable[..., Report]) -> None:
    notes = lint({"main.py": NOQA, "pyproject.toml": '[tool.ruff.lint]\nselect = ["RUF"]\n'}).notes
    assert any("pyproject.toml: ruff takes our `# noqa` comments" in note for note in notes)


def test_without_such_comments_there_is_nothing_to_note(lint: Callable[..., Report]) -> None:
    text = NOQA.replace("noqa: NSL201", "nosync-lint: ignore[NSL201] once")
    assert not any("ruff" in note for note in lint({"main.py": text, "ruff.toml": 'lint.select = ["RUF"]'}).notes)
