"""Imports go downward only, NumPy alone is imported, and every file stays a readable size."""

from __future__ import annotations

import ast
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent / "src" / "pullback"
LAYERS = {
    "errors": 0, "typing": 0, "config": 0, "core": 1, "ops": 2, "eager": 3, "api": 4,
    "transforms": 5, "tracing": 5, "viz": 6, "native": 6, "autograd": 6, "func": 6, "nn": 6,
    "optim": 6, "optimize": 6,
    "__init__": 7,
}  # fmt: skip
# tracing hands its programs to native code when asked to, and imports it there and then
DOWNWARD_EXCEPTIONS = {("tracing/program.py", "native")}
FILES = sorted(p for p in ROOT.rglob("*.py"))


def part_of(path: pathlib.Path) -> str:
    relative = path.relative_to(ROOT)
    return relative.parts[0] if len(relative.parts) > 1 else relative.stem


def imports(path: pathlib.Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
            if node.module == "pullback":
                names = [f"pullback.{a.name}" for a in node.names]
            found |= set(names)
        elif isinstance(node, ast.Import):
            found |= {a.name for a in node.names}
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_go_downward(path: pathlib.Path) -> None:
    mine = part_of(path)
    for name in imports(path):
        if not name.startswith("pullback."):
            continue
        other = name.split(".")[1]
        if other == mine or (str(path.relative_to(ROOT)), other) in DOWNWARD_EXCEPTIONS:
            continue
        assert LAYERS[other] <= LAYERS[mine], f"{path.name} imports {name}"
        assert LAYERS[other] < LAYERS[mine] or LAYERS[mine] >= 5, f"{path.name} imports {name}"


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_files_keep_to_one_subject(path: pathlib.Path) -> None:
    assert len(path.read_text().splitlines()) <= 800
    assert ast.get_docstring(ast.parse(path.read_text())), "a module says what it holds"


def test_importing_loads_numpy_and_nothing_else() -> None:
    code = (
        "import sys, numpy; before = set(sys.modules); import pullback; "
        "new = {m.split('.')[0] for m in set(sys.modules) - before}; "
        "print(sorted(m for m in new if m not in sys.stdlib_module_names and m != 'pullback'))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
