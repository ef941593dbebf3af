"""What starts fast: neither the page nor the command line imports what takes seconds before it is needed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
HEAVY = "torch transformers sentence_transformers sklearn scipy matplotlib faiss jnius xllamacpp".split()


@pytest.mark.parametrize("module", ["app", "assistant.__main__", "assistant.web.server"])
def test_nothing_slow_is_imported(module: str) -> None:
    script = f"import sys, {module}; print(*[name for name in {HEAVY} if name in sys.modules])"
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.split() == []
