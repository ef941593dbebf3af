"""The trainer of small judges: it learns, goes on where it was killed, and refuses another plan."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from assistant.errors import DataError, ModelError
from assistant.protocols import silent
from assistant.training.loop import MODEL
from assistant.training.trainer import LabelledPair, PairTrainer, Plan

pytest_plugins = ["tests.fixtures_relevance"]


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


WORDS = "milk lentils paris lima oslo nairobi france peru norway kenya".split()
PAIRS = [LabelledPair(one, other, float(other in WORDS[:5])) for one in WORDS for other in WORDS]


def trainer(folder: Path, base: Path, **changes) -> PairTrainer:
    plan = replace(Plan(str(base), batch=16, rate=3e-3, length=48, warm_up=5, save_every=10, frozen=False), **changes)
    return PairTrainer(folder, plan, PAIRS * 5, PAIRS)


def test_it_learns_and_keeps_the_best(tiny_cross_encoder, tmp_path):
    stages = trainer(tmp_path, tiny_cross_encoder).run(silent)
    assert stages[-1].loss < stages[0].loss
    assert max(stage.auc for stage in stages) > 0.9
    assert any(stage.best for stage in stages)
    assert (tmp_path / MODEL / "model.safetensors").exists()


def test_a_killed_training_goes_on_as_if_nothing_had_been(tiny_cross_encoder, tmp_path):
    whole = trainer(tmp_path / "whole", tiny_cross_encoder).run(silent)

    def killed(done: int, total: int) -> None:
        if done == 13:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        trainer(tmp_path / "killed", tiny_cross_encoder).run(killed)
    again = trainer(tmp_path / "killed", tiny_cross_encoder).run(silent)
    assert [stage.auc for stage in again] == pytest.approx([stage.auc for stage in whole])


def test_another_plan_or_base_is_refused(tiny_cross_encoder, tmp_path):
    trainer(tmp_path, tiny_cross_encoder).run(silent)
    with pytest.raises(DataError, match="choose another"):
        trainer(tmp_path, tiny_cross_encoder, rate=1e-3)
    with pytest.raises(ModelError, match="no encoder"):
        trainer(tmp_path / "new", tmp_path / "nothing")
    with pytest.raises(DataError, match="both labels"):
        PairTrainer(tmp_path / "one", Plan(str(tiny_cross_encoder)), PAIRS, PAIRS[:5])
