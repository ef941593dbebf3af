"""`bench convert` converts a real small model and tells what that took."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from assistant.__main__ import app
from assistant.errors import ModelError

pytest.importorskip("openvino_genai")


@pytest.mark.model
def test_what_converting_takes_is_told_and_kept(smollm_path: Path, tmp_path: Path) -> None:
    words = ["bench", "convert", "--model", str(smollm_path), "--json", "--out", str(tmp_path / "out")]
    result = CliRunner().invoke(app, words, catch_exceptions=False)
    told = json.loads(result.stdout)
    size = smollm_path.stat().st_size / 1e9
    assert told == json.loads((tmp_path / "out" / "convert.json").read_text())
    assert told["file_gb"] == pytest.approx(size)
    assert 0.5 * size < told["converted_gb"] < 2 * size
    assert told["seconds"] > 0
    assert size < told["memory_gb"] <= told["with_files_gb"]


def test_a_file_that_is_none_is_told(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="There is no model at"):
        CliRunner().invoke(app, ["bench", "convert", "--model", "/nowhere/x.gguf"], catch_exceptions=False)
    assert not list(tmp_path.iterdir())
