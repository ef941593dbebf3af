"""What may import what: no room one above it; and neither page nor command line what takes seconds, too early."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.readme import layers, rooms

ROOT = Path(__file__).parents[1]
HEAVY = "torch transformers sentence_transformers sklearn scipy matplotlib faiss jnius xllamacpp".split()


@pytest.mark.parametrize("module", ["app", "assistant.__main__", "assistant.web.server"])
def test_nothing_slow_is_imported(module: str) -> None:
    script = f"import sys, {module}; print(*[name for name in {HEAVY} if name in sys.modules])"
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.split() == []


def test_the_contracts_of_imports_are_kept() -> None:
    command = [Path(sys.executable).with_name("lint-imports"), "--no-cache", "--no-logo"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout


def test_every_room_has_its_layer() -> None:
    assert sorted(room for layer in layers() for room in layer) == sorted(rooms())
