"""A training of a cross-encoder in steps; a killed one goes on where it last saved.

After every stage, which is so many steps, the model is measured, and kept if it is the best so far.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import torch
from pydantic import TypeAdapter
from torch import Tensor

from assistant.judges.cross_encoder import fastest
from assistant.protocols import Progress
from assistant.training import checkpoint
from assistant.training.models import descend, save

MODEL, HISTORY = "model", "history.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """What every plan says: AdamW's highest rate and decay, the seed, and after how many steps a training is saved.

    `frozen` leaves the word embeddings as they are: half of a small encoder's weights, and what it knows of words that
    no training pair has.
    """

    rate: float
    decay: float = 0.01
    seed: int = 0
    frozen: bool
    save_every: int


class StageResult(Protocol):
    """What a stage came to, and whether it is the best so far."""

    @property
    def best(self) -> bool: ...  # noqa: D102


S = TypeVar("S", bound=StageResult)


class Training(ABC, Generic[S]):
    """One training, in a folder of its own: `model` is the best so far, `checkpoint.pt` where it goes on.

    Raises:
        DataError: the folder can't be written to, or holds a training with another claim.
    """

    def __init__(
        self,
        folder: Path,
        schedule: Schedule,
        tokenizer: Any,
        model: Any,
        stages: TypeAdapter[list[S]],
        claim: dict[str, Any],
        device: torch.device,
    ) -> None:
        """`claim` is what a training that goes on has to share, `stages` reads what was measured before."""
        self._folder, self._schedule, self._stages, self._claim = folder, schedule, stages, claim
        self._tokenizer, self._model, self._device = tokenizer, model.to(device), device
        if schedule.frozen:
            model.get_input_embeddings().weight.requires_grad_(False)
        trainable_weights = [weight for weight in model.parameters() if weight.requires_grad]
        self._optimizer = torch.optim.AdamW(trainable_weights, lr=schedule.rate, weight_decay=schedule.decay)
        self._step, self._loss_sum, self._last_measured_step, self._history = 0, 0.0, 0, list[S]()
        self._resume()

    @property
    @abstractmethod
    def steps(self) -> int:
        """Steps of the whole training."""

    @property
    @abstractmethod
    def _steps_per_stage(self) -> int:
        """Steps of a stage."""

    @abstractmethod
    def _loss(self) -> Tensor:
        """What this step is to make smaller."""

    @abstractmethod
    def _rate(self) -> float:
        """The learning rate of this step."""

    @abstractmethod
    def _measure(self, mean: float) -> S:
        """What the stage that ends here came to; `mean` is its mean loss in training."""

    def run(self, progress: Progress) -> list[S]:
        """Train what is left, and say what every stage came to."""
        while self._step < self.steps:
            progress(self._step, self.steps)
            self._loss_sum += self._learn()
            self._step += 1
            if self._step % self._steps_per_stage == 0:
                self._end_stage()
            if self._step % self._steps_per_stage == 0 or self._step % self._schedule.save_every == 0:
                self._save()
        if self._last_measured_step < self._step:
            self._end_stage()
            self._save()
        progress(self.steps, self.steps)
        return list(self._history)

    def _learn(self) -> float:
        # every step has a seed of its own, so that a training that was resumed drops out the same
        torch.manual_seed(self._schedule.seed * 1_000_003 + self._step)
        self._model.train()
        self._optimizer.param_groups[0]["lr"] = self._rate()
        return descend(self._loss(), self._model, self._optimizer)

    def _logits(self, pairs: Sequence[tuple[str, str]], **padding: Any) -> Tensor:
        """One logit a pair of texts, in their order; all of them are read at once."""
        first, second = zip(*pairs, strict=True)
        inputs = self._tokenizer(
            list(first), list(second), padding=True, truncation=True, return_tensors="pt", **padding
        ).to(self._device)
        dtype = fastest()
        with torch.autocast(self._device.type, dtype=dtype, enabled=dtype != torch.float32):
            logits: Tensor = self._model(**inputs).logits[:, 0].float()
        return logits

    # --- what is kept --------------------------------------------------------------------------------------------

    def _end_stage(self) -> None:
        stage = self._measure(self._loss_sum / (self._step - self._last_measured_step))
        self._history.append(stage)
        self._loss_sum, self._last_measured_step = 0.0, self._step
        if stage.best:
            save(self._folder / MODEL, self._model, self._tokenizer)

    def _save(self) -> None:
        state = {
            "step": self._step,
            "sum": self._loss_sum,
            "measured": self._last_measured_step,
            "model": self._model.state_dict(),
            "optimizer": self._optimizer.state_dict(),
            "history": self._stages.dump_python(self._history),
        }
        checkpoint.save(self._folder, self._claim, state)
        (self._folder / HISTORY).write_text(json.dumps(state["history"], indent=2) + "\n", encoding="utf-8")

    def _resume(self) -> None:
        state = checkpoint.load(self._folder, self._claim, self._device)
        if state is None:
            return
        self._model.load_state_dict(state["model"])
        self._optimizer.load_state_dict(state["optimizer"])
        self._step, self._loss_sum, self._last_measured_step = state["step"], state["sum"], state["measured"]
        self._history = self._stages.validate_python(state["history"])
