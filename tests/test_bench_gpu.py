"""`bench gpu`: what it says where something is missing, and that the rest goes on where one part fails."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from assistant.__main__ import app
from assistant.errors import DataError, ModelError
from assistant.llm.load import NO_CUDA
from benchmarks import gpu


def call(*words: object) -> None:
    result = CliRunner().invoke(app, ["bench", "gpu", *map(str, words)])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output


@pytest.fixture
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "sees_gpu", lambda: False)


@pytest.mark.usefixtures("no_gpu")
def test_without_a_gpu_one_sentence_says_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(ModelError, match=r"^There is no GPU that torch can use; run .* --on-cpu\.$"):
        call("--out", tmp_path / "gpu")
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(torch.version, "cuda", None)
    assert gpu.missing() == NO_CUDA
    assert not (tmp_path / "gpu").exists()


def test_with_a_gpu_packages_may_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "sees_gpu", lambda: True)
    assert gpu.missing() == ""
    monkeypatch.setattr(gpu, "find_spec", lambda name: None if name == "bitsandbytes" else object())
    assert gpu.missing() == "bitsandbytes can't be found; run `pip install -r requirements.txt`."


def test_what_can_not_be_measured_is_refused_before_anything_is_loaded(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="There is no quantisation 'int5'; give some of none, int8, nf4"):
        call("--on-cpu", "--quantisations", "nf4,int5", "--out", tmp_path)
    (tmp_path / "file").write_text("mine")
    with pytest.raises(DataError, match="choose another"):
        call("--on-cpu", "--out", tmp_path / "file")
    with pytest.raises(ModelError, match="There is no model at /nowhere/model"):
        call("--on-cpu", "--model", "/nowhere/model", "--out", tmp_path / "gpu")


@pytest.mark.timeout(600)
def test_what_fails_in_its_process_is_told(tmp_path: Path) -> None:
    """A folder holds no model."""
    (tmp_path / "model").mkdir()
    given = ["--on-cpu", "--model", tmp_path / "model", "--quantisations", "nf4", "--data-dir", tmp_path / "data"]
    with pytest.raises(ModelError, match="Not all could be measured: nf4; see above why"):
        call(*given, "--limit", 0, "--out", tmp_path / "gpu")
    found = json.loads((tmp_path / "gpu" / "gpu.json").read_text())
    assert set(found["failed"]) == {"nf4"}
    assert "transformers could not be measured" in found["failed"]["nf4"]
    assert found["costs"] == []
    assert found["machine"]["packages"]["torch"]


def test_what_was_measured_is_kept_beside_what_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a measurement gives is tests/test_bench_llm.py's; here one of three runs out of memory."""

    def measured(model: str, backend: str, quantisation: str, *_: object) -> dict[str, object]:
        if quantisation == "int8":
            raise ModelError("transformers could not be measured: out of memory")
        return {"model": model, "backend": backend, "quantisation": quantisation, "read": 2.0, "batches": {1: 3.0}}

    monkeypatch.setattr(gpu, "measure_in_process", measured)
    with pytest.raises(ModelError, match="Not all could be measured: int8; see above why"):
        call("--on-cpu", "--model", tmp_path, "--limit", 0, "--out", tmp_path / "gpu")
    found = json.loads((tmp_path / "gpu" / "gpu.json").read_text())
    assert [cost["quantisation"] for cost in found["costs"]] == ["none", "nf4"]
    assert found["failed"] == {"int8": "transformers could not be measured: out of memory"}
