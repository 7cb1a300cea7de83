"""The README and the docs show only what runs."""

from __future__ import annotations

import doctest
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent


@pytest.mark.parametrize("name", ["README.md", "README.zh-CN.md"])
def test_examples_run_and_print_what_they_say(
    name: str, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / name).read_text(), re.S)
    exec(compile(block, "demo.py", "exec"), {})
    printed = capsys.readouterr().out
    for line in re.findall(r"# +(tensor\(.*\))", block):
        assert line in printed
    if name == "README.md":
        assert "detached at" in printed and "MulBackward0" in printed
        assert (tmp_path / "graph.html").stat().st_size > 10000


def test_numbers_of_cases_are_current() -> None:
    from tests.parity.cases import CASES

    for name in ("README.md", "README.zh-CN.md"):
        assert str(len(CASES)) in (ROOT / name).read_text()


def test_examples_beyond_pytorch() -> None:
    pytest.importorskip("scipy")
    found = doctest.testfile(str(ROOT / "docs" / "beyond-pytorch.md"), module_relative=False)
    assert found.attempted > 15
    assert not found.failed
