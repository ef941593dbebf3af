import json
from pathlib import Path

import pytest

from assistant.commands import bench_llm
from assistant.settings import LLMSettings, Settings

pytestmark = pytest.mark.model


@pytest.mark.parametrize("backend", ["llama.cpp", "transformers"])
def test_every_cost_is_taken(smollm_path: Path, tmp_path: Path, backend: bench_llm.Backend, monkeypatch) -> None:
    monkeypatch.setattr(bench_llm, "_BATCHES", (1, 2))
    monkeypatch.setattr(bench_llm, "_WRITTEN", 8)
    monkeypatch.setattr(bench_llm, "_BATCH_WRITTEN", 4)
    settings = Settings(data_dir=tmp_path, hub=False, llm=LLMSettings(context=1024))
    cost = bench_llm.measure(str(smollm_path), backend, "none", settings)
    assert cost.read > 0
    assert cost.written > 0
    assert set(cost.batches) == {1, 2}
    assert set(cost.users) == set(cost.sampling_users) == {1, 4}
    assert set(cost.reading_users) == {1, 8}
    for users in (cost.users, cost.sampling_users, cost.reading_users):
        assert all(speed > 0 and first > 0 for speed, first in users.values())
    assert 0 < cost.bandwidth_share < 10
    assert json.loads(json.dumps(cost.__dict__))["backend"] == backend
