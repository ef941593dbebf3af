"""Trains a cross-encoder as relevance estimator from what a generator makes of each passage (RE-RAG, section 2.3).

No passage is labelled: the generator's log-likelihoods of the right answer say which passages help. The generator is
frozen here, so that they are numbers given beforehand. A softmax over passages alone would leave open what a score of 0
means; where the likelihood without any passage is known as well, it takes part with a score fixed at 0, so that a
passage scores above 0 if it is better than none, and questions that no passage answers teach something too. This is our
addition to the paper.

After every epoch the model is saved if more of the development questions are answered rightly with its weights, as in
the paper; among equals, and where the generator's own answers aren't known, if it weighs their passages better (L_gen).
A killed training goes on where it last saved.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from math import inf, isfinite, sqrt
from pathlib import Path
from typing import Any

import torch
from pydantic import TypeAdapter
from torch import Tensor

from assistant.errors import DataError
from assistant.judges.relevance.estimators.cross_encoder import pair
from assistant.judges.relevance.weights import best, marginal
from assistant.text.sentences import normalise
from assistant.training.loop import Schedule, Training
from assistant.training.models import load_encoder
from assistant.training.relevance.losses import MIN_LOG_LIKELIHOOD, generation_loss, loss
from assistant.types import Passage

# Pairs that go through the model at once, of similar lengths so that little of it is padding.
PAIRS_PER_PASS = 16


@dataclass(frozen=True, slots=True)
class Example:
    """A question, its retrieved passages, and F_j = log P_G(a|q,c_j) for each of them, in nats.

    `log_likelihood_without` is log P_G(a|q), the answer's likelihood without any passage; -inf where that is not known.
    Where there are `answers`, they are what the generator writes after each passage, with its log-likelihood, and
    `accepted` what is right.
    """

    question: str
    passages: tuple[Passage, ...]
    log_likelihoods: tuple[float, ...]
    log_likelihood_without: float = -inf
    answers: tuple[tuple[str, float], ...] = ()
    accepted: tuple[str, ...] = ()

    @property
    def has_possible_answer(self) -> bool:
        """Whether the generator holds the answer possible with any passage."""
        return any(
            isfinite(log_likelihood) and log_likelihood > MIN_LOG_LIKELIHOOD for log_likelihood in self.log_likelihoods
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan(Schedule):
    """How to train. `base` is a folder with a cross-encoder or any encoder, which then gets a head at random.

    `batch` is in questions, `length` in tokens of question and passage together, `alpha` is a1 of equation 12. The rate
    rises for `warm_up` steps and then falls with the square root of the steps, so that it needs no end to aim at.
    `max_steps` ends it after so many; what was begun of an epoch then counts as one.
    """

    base: str = field(kw_only=False)
    epochs: int = 3
    batch: int = 4
    rate: float = 5e-5
    alpha: float = 1.0
    length: int = 256
    warm_up: int = 0
    frozen: bool = False
    max_steps: int | None = None
    save_every: int = 50


@dataclass(frozen=True, slots=True)
class Epoch:
    """What an epoch came to: the mean loss in training; on the development questions L_gen (lower is better) and EM.

    `em` is None where the generator's answers aren't known.
    """

    number: int
    loss: float
    dev: float
    best: bool
    em: float | None = None

    @property
    def worth(self) -> tuple[float, float]:
        """What epochs are compared by, the more the better."""
        return self.em or 0.0, -self.dev


class Trainer(Training[Epoch]):
    """One training, in a folder of its own: `model` is the best so far, `checkpoint.pt` where it goes on.

    Raises:
        DataError: there is nothing to learn from, or the folder holds a training by another plan.
        ModelError: the base can't be loaded.
    """

    def __init__(self, folder: Path, plan: Plan, train: Sequence[Example], dev: Sequence[Example]) -> None:
        self._plan = plan
        self._train = [example for example in train if example.has_possible_answer]
        self._dev = [example for example in dev if example.has_possible_answer]
        if not self._train or not self._dev:
            kind = "development" if self._train else "training"
            raise DataError(f"The generator holds no answer to any {kind} question possible; take more questions.")
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        base = load_encoder(plan.base, plan.seed, plan.length)
        super().__init__(folder, plan, *base, _EPOCHS, _claim(plan, self._train, self._dev), device)

    @property
    def steps(self) -> int:
        """Steps of the whole training."""
        all_steps = self._plan.epochs * self._steps_per_stage
        return all_steps if self._plan.max_steps is None else min(all_steps, self._plan.max_steps)

    def dev_loss(self) -> float:
        """L_gen on the development questions, in nats: how unlikely the answers are, weighed by relevance."""
        self._model.eval()
        with torch.inference_mode():
            losses = [generation_loss(*self._read([example])).item() for example in self._dev]
        return sum(losses) / len(losses)

    def dev_em(self) -> float | None:
        """The share of development questions whose likeliest answer is right; None where no answers are known.

        An answer has no probability after passages that gave another.
        """
        answered = [example for example in self._dev if example.answers]
        self._model.eval()
        with torch.inference_mode():
            hits = [self._is_right(example) for example in answered]
        return sum(hits) / len(hits) if hits else None

    def _is_right(self, example: Example) -> bool:
        scores = self._scores([pair(example.question, passage) for passage in example.passages]).tolist()
        keys = [normalise(text) for text, _ in example.answers]
        distinct = [key for key in dict.fromkeys(keys) if key]
        key_logs = [(key, min(log, 0.0)) for key, (_, log) in zip(keys, example.answers, strict=True)]
        log_rows = [[log if key == answer else -inf for key, log in key_logs] for answer in distinct]
        best_position = best(marginal(scores, log_rows))
        return best_position is not None and distinct[best_position] in set(map(normalise, example.accepted))

    @property
    def _steps_per_stage(self) -> int:
        return -(-len(self._train) // self._plan.batch)

    def _batch(self) -> list[Example]:
        epoch, batch_number = divmod(self._step, self._steps_per_stage)
        order = list(range(len(self._train)))
        random.Random(f"{self._plan.seed} {epoch}").shuffle(order)  # noqa: S311 - an experiment, not a secret
        return [self._train[n] for n in order[batch_number * self._plan.batch :][: self._plan.batch]]

    def _loss(self) -> Tensor:
        return loss(*self._read(self._batch()), self._plan.alpha)

    def _rate(self) -> float:
        step, warm_up = self._step + 1, self._plan.warm_up
        return self._plan.rate * (min(step / warm_up, sqrt(warm_up / step)) if warm_up else 1.0)

    def _read(self, batch: Sequence[Example]) -> tuple[Tensor, Tensor, Tensor]:
        """Scores s_j, log-likelihoods F_j and presence, each (questions, contexts + 1); no passage is the last."""
        pairs = [pair(example.question, passage) for example in batch for passage in example.passages]
        present = _padded([torch.ones(len(example.passages), dtype=torch.bool) for example in batch]).to(self._device)
        scores = torch.zeros(present.shape, device=self._device).masked_scatter(present, self._scores(pairs))
        log_likelihoods = _padded([torch.tensor(example.log_likelihoods) for example in batch]).to(self._device)
        without = torch.tensor([[example.log_likelihood_without] for example in batch], device=self._device)
        return (
            torch.cat([scores, torch.zeros_like(without)], 1),
            torch.cat([log_likelihoods, without], 1),
            torch.cat([present, without.isfinite()], 1),
        )

    def _scores(self, pairs: Sequence[tuple[str, str]]) -> Tensor:
        """One logit a pair, in their order."""
        order = sorted(range(len(pairs)), key=lambda n: len(pairs[n][0]) + len(pairs[n][1]))
        logits = [
            self._logits([pairs[n] for n in order[start : start + PAIRS_PER_PASS]])
            for start in range(0, len(order), PAIRS_PER_PASS)
        ]
        positions = torch.tensor(order, device=self._device).argsort()
        return torch.cat(logits)[positions]

    def _measure(self, mean: float) -> Epoch:
        epoch = Epoch(len(self._history) + 1, mean, self.dev_loss(), best=False, em=self.dev_em())
        return replace(epoch, best=all(epoch.worth > past_epoch.worth for past_epoch in self._history))


_EPOCHS: TypeAdapter[list[Epoch]] = TypeAdapter(list[Epoch])


def _claim(plan: Plan, train: Sequence[Example], dev: Sequence[Example]) -> dict[str, Any]:
    """What a training that goes on has to share. More epochs may be added, and it may be saved at other times."""
    plan_fields = {
        key: value for key, value in asdict(plan).items() if key not in ("epochs", "max_steps", "save_every")
    }
    return {**plan_fields, "train": _digest(train), "dev": _digest(dev)}


def _digest(examples: Sequence[Example]) -> str:
    contents = [
        (
            example.question,
            [passage.id for passage in example.passages],
            example.log_likelihoods,
            example.log_likelihood_without,
            example.answers,
        )
        for example in examples
    ]
    return sha256(repr(contents).encode("utf-8", "replace")).hexdigest()


def _padded(rows: Sequence[Tensor]) -> Tensor:
    return torch.nn.utils.rnn.pad_sequence(list(rows), batch_first=True)
