"""Trains a cross-encoder of one logit on labelled pairs of texts; a killed training goes on where it last saved.

One pass over the pairs in an order drawn by the seed. Every `save_every` steps the development pairs are judged, and
the model is kept if its AUC there is the best so far.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch
from pydantic import TypeAdapter
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from assistant.errors import DataError
from assistant.training.loop import Schedule, Training
from assistant.training.models import load_adapter, load_encoder, low_rank

# Pairs read at once when nothing is learned.
EVAL_BATCH_SIZE = 128
# Batches whose pairs are sorted by length together.
BATCHES_SORTED_TOGETHER = 25


@dataclass(frozen=True, slots=True)
class LabelledPair:
    """Two texts and what should be said of them, 0 or 1."""

    first: str
    second: str
    label: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan(Schedule):
    """How to train. `base` is a folder with an encoder or a cross-encoder; an encoder gets a head at random.

    `length` is in tokens of both texts together. The rate rises for `warm_up` steps to `rate` and then falls along a
    line to nothing. On a processor a step without `dropout` takes two thirds of the time. With a `rank`, only matrices
    of this rank are learned, which are added to those of the layers from `first_layer` on, and the head (Hu et al.
    2022, "LoRA"). With an `adapter`, a folder of such, that one is learned on.
    """

    base: str = field(kw_only=False)
    batch: int = 16
    rate: float = 1e-4
    length: int = 96
    warm_up: int = 100
    frozen: bool = True
    dropout: float = 0.1
    smoothing: float = 0.02
    save_every: int = 500
    rank: int = 0
    first_layer: int = 2
    adapter: str = ""


@dataclass(frozen=True, slots=True)
class Stage:
    """What the steps up to one came to: the mean loss in training since the last, and AUC on the development pairs."""

    step: int
    loss: float
    auc: float
    best: bool


class PairTrainer(Training[Stage]):
    """One training, in a folder of its own: `model` is the best so far, `checkpoint.pt` where it goes on.

    Raises:
        DataError: there is nothing to learn from, or the folder holds a training by another plan.
        ModelError: the base can't be loaded.
    """

    def __init__(self, folder: Path, plan: Plan, train: Sequence[LabelledPair], dev: Sequence[LabelledPair]) -> None:
        self._plan, self._train, self._dev = plan, list(train), list(dev)
        if not self._train or len({pair.label for pair in self._dev}) < 2:
            raise DataError("A training needs pairs, and development pairs of both labels; make more of them.")
        self._batches = _batches(self._train, plan)
        claim = {**asdict(plan), "train": _digest(self._train), "dev": _digest(self._dev)}
        super().__init__(folder, plan, *_load_base(plan), _STAGES, claim, torch.device("cpu"))

    @property
    def steps(self) -> int:
        """Steps of the whole training."""
        return len(self._batches)

    @property
    def _steps_per_stage(self) -> int:
        return self._plan.save_every

    def _loss(self) -> Tensor:
        batch = [self._train[n] for n in self._batches[self._step]]
        labels = torch.tensor([pair.label for pair in batch])
        targets = labels * (1 - 2 * self._plan.smoothing) + self._plan.smoothing
        return binary_cross_entropy_with_logits(self._pair_logits(batch), targets)

    def _rate(self) -> float:
        step, warm_up = self._step + 1, self._plan.warm_up
        return self._plan.rate * min(step / max(warm_up, 1), (self.steps - self._step) / max(self.steps - warm_up, 1))

    def _pair_logits(self, pairs: Sequence[LabelledPair]) -> Tensor:
        # few widths: for each new one the processor's kernels are made anew
        return self._logits([(pair.first, pair.second) for pair in pairs], pad_to_multiple_of=16)

    def _measure(self, mean: float) -> Stage:
        auc = self._auc()
        return Stage(self._step, mean, auc, best=all(auc > stage.auc for stage in self._history))

    def _auc(self) -> float:
        from sklearn.metrics import roc_auc_score  # noqa: PLC0415 - takes a second to import

        self._model.eval()
        order = sorted(range(len(self._dev)), key=lambda n: len(self._dev[n].second))
        batches = [
            [self._dev[n] for n in order[start : start + EVAL_BATCH_SIZE]]
            for start in range(0, len(order), EVAL_BATCH_SIZE)
        ]
        with torch.inference_mode():
            logits = torch.cat([self._pair_logits(batch) for batch in batches])
        return float(roc_auc_score([self._dev[n].label for n in order], logits.numpy()))


_STAGES: TypeAdapter[list[Stage]] = TypeAdapter(list[Stage])


def _load_base(plan: Plan) -> tuple[Any, Any]:
    tokenizer, model = load_encoder(plan.base, plan.seed, plan.length, attn_implementation="eager")
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = plan.dropout
    if plan.adapter:
        return tokenizer, load_adapter(model, plan.adapter)
    return tokenizer, low_rank(model, plan.rank, plan.first_layer) if plan.rank else model


def _batches(pairs: Sequence[LabelledPair], plan: Plan) -> list[list[int]]:
    """The positions of all pairs, in batches, in an order drawn by the seed; those of a batch are alike in length.

    Padding costs half of the time otherwise. Only some batches' worth of pairs are sorted at once, so that what is
    learned together still changes.
    """
    chance = random.Random(plan.seed)  # noqa: S311 - an experiment, not a secret
    order = chance.sample(range(len(pairs)), len(pairs))
    all_batches = []
    for start in range(0, len(order), BATCHES_SORTED_TOGETHER * plan.batch):
        chunk = sorted(
            order[start : start + BATCHES_SORTED_TOGETHER * plan.batch],
            key=lambda n: len(pairs[n].first + pairs[n].second),
        )
        batches = [chunk[offset : offset + plan.batch] for offset in range(0, len(chunk), plan.batch)]
        all_batches += chance.sample(batches, len(batches))
    return all_batches


def _digest(pairs: Sequence[LabelledPair]) -> str:
    return sha256(repr([asdict(pair) for pair in pairs]).encode("utf-8", "replace")).hexdigest()
