"""What may import what: no package one above it; and neither page nor command line what takes seconds, too early."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

from tests.readme import layers, packages

ROOT = Path(__file__).parents[1]
# ruff sees private names that a test uses in its code; these stand in its strings.
PATCHED = re.compile(r"(.*\.)?_[A-Za-z]\w*")
RUN = re.compile(r"(assistant|ptkb|benchmarks)\.[\w.]*\b_[A-Za-z]|(assistant|ptkb|benchmarks)\b.* import .*\b_[A-Za-z]")
HEAVY = "torch transformers sentence_transformers sklearn scipy matplotlib faiss jnius xllamacpp".split()


def test_nothing_slow_is_imported() -> None:
    modules = "sys, app, assistant.__main__, assistant.web.server"
    script = f"import {modules}; print(*[name for name in {HEAVY} if name in sys.modules])"
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.split() == []


def test_the_contracts_of_imports_are_kept() -> None:
    command = [Path(sys.executable).with_name("lint-imports"), "--no-cache", "--no-logo"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout


def test_every_package_has_its_layer() -> None:
    assert sorted(package for layer in layers() for package in layer) == sorted(packages())


def test_tests_name_nothing_private_in_strings() -> None:
    """Neither what they replace or read by name, nor what a process of its own imports."""
    assert private('monkeypatch.setattr(chat, "_x", 1); getattr(chat, "_x"); run("from assistant.chat import _x")') == [
        "_x", "_x", "from assistant.chat import _x",
    ]  # fmt: skip
    files = sorted(Path(__file__).parent.rglob("*.py"))
    found = {str(file): private(file.read_text(encoding="utf-8")) for file in files if file != Path(__file__)}
    assert {file: names for file, names in found.items() if names} == {}


def private(source: str) -> list[str]:
    """The strings of a source that name something private of the project."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    by_name = [call for call in calls if ast.unparse(call.func).rpartition(".")[2] in {"setattr", "getattr", "delattr"}]
    named = [text for call in by_name for text in strings(call) if PATCHED.fullmatch(text)]
    return named + [text for text in strings(ast.parse(source)) if RUN.search(text)]


def strings(tree: ast.AST) -> list[str]:
    """The constant strings in a tree, parts of f-strings included."""
    return [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
