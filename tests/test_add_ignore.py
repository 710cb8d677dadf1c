"""Comments for everything that is shown: they parse, they cover, they change nothing else, and once is enough."""

from __future__ import annotations

import ast
import os
import stat
from datetime import date
from itertools import product
from pathlib import Path

import pytest

from nosync_lint.add_ignore import BadReason, check_reason
from nosync_lint.cli import main

HEADER = "import torch\n\ndef step(t: torch.Tensor, rows: torch.LongTensor):  # nosync-lint: hot\n    c = t.cuda()\n"
COMMENT = "# nosync-lint: ignore[NSL201] legacy"
PLACES = {
    "    c.item()\n": f"    c.item()  {COMMENT}\n",
    "    c.item()": f"    c.item()  {COMMENT}",
    "    c.item()  # later\n": f"    c.item()  # later  {COMMENT}\n",
    "    f(\n        c.item(),\n        1,\n    )\n": f"    f(\n        c.item(),  {COMMENT}\n        1,\n    )\n",
    "    f(c\n      .sum()\n      .item())\n": f"    f(c  {COMMENT}\n      .sum()\n      .item())\n",
    "    a = 1 + \\\n        c.item()\n": f"    a = 1 + \\\n        c.item()  {COMMENT}\n",
    "    a = c.item() + \\\n        1\n": f"    a = c.item() + \\\n        1  {COMMENT}\n",
    "    a = c.item() + '''\n# text\n'''\n": f"    a = c.item() + '''\n# text\n'''  {COMMENT}\n",
    "    f(c.item(), '''\n''',\n      1)\n": f"    f(c.item(), '''\n''',  {COMMENT}\n      1)\n",
    '    f(f"""\n{c.item()}\n""")\n': f'    f(f"""\n{{c.item()}}\n""")  {COMMENT}\n',
    "    if c.item(): return\n": f"    if c.item(): return  {COMMENT}\n",
    "    if (\n        step\n        or c.item()\n    ):\n        pass\n": (
        f"    if (\n        step\n        or c.item()  {COMMENT}\n    ):\n        pass\n"
    ),
    "    a = 1; c.item(); b = 2\n": f"    a = 1; c.item(); b = 2  {COMMENT}\n",
    "    c.item() + c.item()\n": f"    c.item() + c.item()  {COMMENT}\n",
    "    c.item() + c.tolist()\n": f"    c.item() + c.tolist()  {COMMENT.replace('NSL201', 'NSL201, NSL202')}\n",
    "    c.item()  # nosync-lint: ignore[NSL202] x\n": f"    c.item()  # nosync-lint: ignore[NSL202] x  {COMMENT}\n",
    "    c.item()  # noqa: E501\n": f"    c.item()  # noqa: E501  {COMMENT}\n",
    "    with f(\n        c.item()\n    ) as x, y:\n        pass\n": (
        f"    with f(\n        c.item()  {COMMENT}\n    ) as x, y:\n        pass\n"
    ),
    "    g = [c[i].item()\n         for i in rows.cpu()]\n": None,
    "    def g(\n        x=c.item(),\n    ):\n        pass\n": f"    def g(\n        x=c.item(),  {COMMENT}\n    ):\n        pass\n",
    "\tc.item()\n".replace("\t", "    "): f"    c.item()  {COMMENT}\n",
}  # fmt: skip


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("nosync-lint.toml").write_text('select = ["NSL101", "NSL2", "NSL611"]\n')
    return tmp_path


def check(*options: str) -> int:
    return main(["check", "-q", "-n", "-j", "1", "--heat", "any", *options])


def add(reason: str = "legacy") -> int:
    return check("--add-ignore", reason)


@pytest.mark.parametrize(("text", "expected"), PLACES.items(), ids=range(len(PLACES)))
def test_a_comment_stands_where_it_parses_and_covers(text: str, expected: str | None) -> None:
    file = Path("main.py")
    file.write_text(HEADER + text)
    assert check() == 1
    assert add() == 0
    written = file.read_text()
    if expected is not None:
        assert written == HEADER + expected
    assert ast.dump(ast.parse(written)) == ast.dump(ast.parse(HEADER + text))
    assert check() == 0
    assert add() == 0
    assert file.read_text() == written


@pytest.mark.parametrize(
    ("encoding", "end"),
    [*product(["utf-8", "utf-8-sig"], ["\n", "\r\n", "\r"]), *product(["latin-1", "gb18030"], ["\n", "\r\n"])],
)
def test_encoding_and_line_ends_stay(encoding: str, end: str) -> None:
    text = f"# coding: {encoding.removesuffix('-sig')}\n{HEADER}    é = 'ü', c.item()\n"
    Path("main.py").write_bytes(text.replace("\n", end).encode(encoding))
    assert add() == 0
    written = text.replace("c.item()\n", f"c.item()  {COMMENT}\n")
    assert Path("main.py").read_bytes() == written.replace("\n", end).encode(encoding)
    assert check() == 0


def test_the_mode_stays_and_a_link_is_followed(folder: Path) -> None:
    real = folder / "real.py"
    real.write_text(HEADER + "    c.item()\n")
    real.chmod(0o755)
    (folder / "deep").mkdir()
    (folder / "deep" / "link.py").symlink_to(real)
    assert check("deep", "--add-ignore", "legacy") == 0
    assert (folder / "deep" / "link.py").is_symlink()
    assert real.read_text().endswith(f"{COMMENT}\n")
    assert stat.S_IMODE(real.stat().st_mode) == 0o755
    assert sorted(os.listdir(folder)) == ["deep", "nosync-lint.toml", "real.py"]


def test_a_reason_that_a_file_cannot_hold_leaves_it_alone(capsys: pytest.CaptureFixture[str]) -> None:
    text = f"# coding: latin-1\n{HEADER}    c.item()\n".encode("latin-1")
    Path("main.py").write_bytes(text)
    Path("other.py").write_text(HEADER + "    c.item()\n")
    assert add("日本") == 1
    assert Path("main.py").read_bytes() == text
    assert "日本" in Path("other.py").read_text()
    errors = capsys.readouterr().err
    assert "not covered: main.py:6: NSL201 item-read: the reason cannot be written in the encoding" in errors
    assert "added 1 comment in 1 file" in errors


def test_only_what_is_shown_gets_a_comment() -> None:
    Path("main.py").write_text(HEADER + "    c.item()\n    c.tolist()\n")
    assert check("--select", "NSL202", "--add-ignore", "legacy") == 0
    assert (
        Path("main.py").read_text() == HEADER + "    c.item()\n    c.tolist()  # nosync-lint: ignore[NSL202] legacy\n"
    )


def test_what_no_comment_can_cover_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    Path("nosync-lint.toml").write_text('hot = ["Gone.step"]\n')
    Path("main.py").write_text("x = 1  # nosync-lint: ignore[NSL101] why\n")
    Path("broken.py").write_text("x = (\n")
    before = {path.name: path.read_bytes() for path in Path().iterdir()}
    assert add() == 1
    errors = capsys.readouterr().err
    assert "main.py:1: NSL001 unused-suppression: it is no finding that a comment can cover" in errors
    assert "broken.py:1: NSL000 unreadable-file: it is no finding that a comment can cover" in errors
    assert "nosync-lint.toml:1: NSL003 unknown-root: it stands in no source file" in errors
    assert {path.name: path.read_bytes() for path in Path().iterdir()} == before


CUDA = """#include <cuda_runtime.h>

#define FENCE(s) \\
  cudaStreamSynchronize(s)

void step(cudaStream_t s) {  // nosync-lint: hot
  %s
}
"""
CUDA_PLACES = {
    "cudaDeviceSynchronize();": "cudaDeviceSynchronize();  // nosync-lint: ignore[NSL611] legacy",
    "cudaDeviceSynchronize();  // why": "cudaDeviceSynchronize();  // why  // nosync-lint: ignore[NSL611] legacy",
    "cudaStreamSynchronize(\n      s);": "cudaStreamSynchronize(  // nosync-lint: ignore[NSL611] legacy\n      s);",
    "cudaDeviceSynchronize(); /* a\n  b */": "// nosync-lint: ignore[NSL611] legacy\n  cudaDeviceSynchronize(); /* a\n  b */",
    'cudaDeviceSynchronize(), f("//", \'"\');': 'cudaDeviceSynchronize(), f("//", \'"\');  // nosync-lint: ignore[NSL611] legacy',
    'cudaDeviceSynchronize(), f(R"(\n)");': '// nosync-lint: ignore[NSL611] legacy\n  cudaDeviceSynchronize(), f(R"(\n)");',
}  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), CUDA_PLACES.items(), ids=range(len(CUDA_PLACES)))
@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["lf", "crlf"])
def test_comments_in_cuda_files(text: str, expected: str, end: str) -> None:
    file = Path("step.cu")
    file.write_bytes((CUDA % text).replace("\n", end).encode())
    assert check() == 1
    assert add() == 0
    assert file.read_bytes() == (CUDA % expected).replace("\n", end).encode()
    assert check() == 0


@pytest.mark.parametrize(
    ("reason", "why"),
    [
        ("", "a comment needs a reason"),
        ("  ", "a comment needs a reason"),
        ("two\nlines", "one line of printable text"),
        ("why # more", "a second comment begins in it"),
        ("# why", "a second comment begins in it"),
        ("owner=@me", "gives no reason"),
        ("until=2027-02-30 why", "`2027-02-30` is no day"),
        ("until=2027-02-28 why", "until=2027-02-28 is over"),
        ("expires=2027-02-28 why", "`expires` is no key"),
    ],
)
def test_a_reason_that_would_not_be_read_is_refused(reason: str, why: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(BadReason) as error:
        check_reason(reason, date(2027, 3, 1))
    assert why in str(error.value)


@pytest.mark.parametrize("reason", ["see #12", "https://a/b", "until=2027-03-01 owner=@me why", "100 % é"])
def test_a_reason_that_can_be_read_is_taken(reason: str) -> None:
    check_reason(reason, date(2027, 3, 1))


def test_a_refused_reason_is_a_wrong_use(capsys: pytest.CaptureFixture[str]) -> None:
    assert add(" ") == 2
    assert "--add-ignore: a comment needs a reason" in capsys.readouterr().err


def test_a_read_only_file_stays_and_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = HEADER + "    c.item()\n"
    Path("main.py").write_text(text)
    Path("main.py").chmod(0o444)
    assert add() == 1
    assert Path("main.py").read_text() == text
    assert "main.py:5: NSL201 item-read: is read-only; make it writable and run again" in capsys.readouterr().err
    assert sorted(os.listdir(folder)) == ["main.py", "nosync-lint.toml"]
