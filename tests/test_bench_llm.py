"""What a model costs on this machine: that every cost is taken, and where the results go. Times are not tested."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from assistant.commands.option_groups import SettingsOptions
from assistant.errors import DataError
from assistant.settings import Backend, LLMSettings, Settings
from benchmarks import llm as bench
from tests.fixtures_models import sharing_models


@pytest.mark.timeout(900)
@pytest.mark.model
@pytest.mark.parametrize("backend", ["llama.cpp", "openvino"])  # transformers takes minutes on an old processor
def test_every_cost_is_taken(smollm_path: Path, tmp_path: Path, backend: Backend, monkeypatch) -> None:
    small = {"BATCHES": (1, 2), "WRITTEN": 8, "BATCH_WRITTEN": 4, "PROMPT_WORDS": 60, "REPEATS": 1}
    for name, value in small.items():
        monkeypatch.setattr(bench, name, value)
    settings = Settings(data_dir=sharing_models(tmp_path), hub=False, llm=LLMSettings(context=1024))
    cost = bench.measure(str(smollm_path), backend, "none", settings)
    assert cost.read > 0
    assert cost.written > 0
    assert set(cost.batches) == {1, 2}
    assert set(cost.users) == set(cost.sampling_users) == {1, 4}
    assert set(cost.reading_users) == {1, 8}
    for users in (cost.users, cost.sampling_users, cost.reading_users):
        assert all(speed > 0 and first > 0 for speed, first in users.values())
    assert 0 < cost.bandwidth_share < 10
    assert json.loads(json.dumps(cost.__dict__))["backend"] == backend


def test_a_folder_that_takes_no_results_is_told_before_the_model_is_loaded(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("mine")
    with pytest.raises(DataError, match=r"The results can't be written to .*file .*; choose another"):
        bench.llm(model="no-such-model", into=file, settings_options=SettingsOptions(data_dir=tmp_path / "data"))


def test_the_fastest_engine_is_named_for_chat_and_for_evaluation() -> None:
    writer = {"backend": "writer", "read": 60, "written": 30, "batches": {16: 30}}
    reader = {"backend": "reader", "read": 85, "written": 4, "batches": {16: 20}}
    assert bench.fastest([writer, reader]) == "Fastest here: writer for chat, reader for evaluation."
