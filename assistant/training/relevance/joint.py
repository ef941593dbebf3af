"""Trains a seq2seq relevance estimator and the T5 that answers together (RE-RAG, section 2.3).

L = L_gen + a1 L_re + a2 L_tok (equation 12): the generator learns to answer from the contexts that the estimator weighs
high, and the estimator to weigh those high that the generator can answer from. After every epoch both are saved if they
answer more development questions exactly than before (appendix B); a killed training goes on where it last saved.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from pydantic import TypeAdapter
from torch import Tensor

from assistant.errors import DataError
from assistant.judges.relevance.estimators import seq2seq
from assistant.judges.relevance.weights import best, marginal
from assistant.protocols import Progress
from assistant.text.sentences import normalise
from assistant.training import checkpoint
from assistant.training.models import save
from assistant.training.relevance.losses import generation_loss, relevance_loss, token_loss
from assistant.types import Passage

ESTIMATOR, GENERATOR, HISTORY = "estimator", "generator", "history.json"
# Tokens of an answer, in training and in writing.
ANSWER = 24


@dataclass(frozen=True, slots=True)
class Asked:
    """A question with its accepted answers, the first of which is learned, and its retrieved passages."""

    question: str
    answers: tuple[str, ...]
    passages: tuple[Passage, ...]


@dataclass(frozen=True, slots=True)
class JointPlan:
    """How to train: two folders with encoder-decoders, and the knobs of equation 12 and of AdamW.

    `batch` is in questions, whose gradients are added up one after the other; `length` in tokens of a question with one
    passage. The rate is constant, as in the paper.
    """

    estimator: str
    generator: str
    epochs: int = 3
    batch: int = 8
    rate: float = 1e-4
    decay: float = 1e-3
    alpha1: float = 1.0
    alpha2: float = 1.0
    length: int = seq2seq.LENGTH
    seed: int = 0


@dataclass(frozen=True, slots=True)
class JointEpoch:
    """What an epoch came to: the mean loss in training, and the share of dev questions answered exactly."""

    number: int
    loss: float
    em: float
    best: bool


class JointTrainer:
    """One training, in a folder of its own, with `estimator` and `generator` as they were best.

    Raises:
        DataError: there is nothing to learn from, or the folder holds a training by another plan.
        ModelError: a model can't be loaded.
    """

    def __init__(self, folder: Path, plan: JointPlan, train: Sequence[Asked], dev: Sequence[Asked]) -> None:
        self._folder, self._plan = folder, plan
        self._train, self._dev = _usable(train), _usable(dev)
        if not self._train or not self._dev:
            raise DataError("No question has both an answer and a passage; take more questions.")
        self._device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self._reader, self._estimator = seq2seq.load(Path(plan.estimator))
        self._writer, self._generator = seq2seq.load(Path(plan.generator))
        self._words = seq2seq.word_ids(self._reader)
        for model in (self._estimator, self._generator):
            model.to(self._device)
        weights = chain(self._estimator.parameters(), self._generator.parameters())
        self._optimizer = torch.optim.AdamW(weights, lr=plan.rate, weight_decay=plan.decay)
        self._history = list[JointEpoch]()
        self._resume()

    def run(self, progress: Progress) -> list[JointEpoch]:
        """Train the epochs that are left, and say what every epoch came to."""
        while len(self._history) < self._plan.epochs:
            mean = self._epoch(progress)
            em = self.exact_match()
            self._keep(JointEpoch(len(self._history) + 1, mean, em, all(em > one.em for one in self._history)))
        return list(self._history)

    def loss(self, asked: Sequence[Asked]) -> Tensor:
        """Equation 12 on these questions, the mean over them, with gradients into both models."""
        return torch.stack([self._loss(one) for one in asked]).mean()

    def exact_match(self) -> float:
        """The share of development questions whose likeliest answer (equation 6) is an accepted one."""
        self._mode(training=False)
        with torch.inference_mode():
            hits = [normalise(self.answer(one)) in set(map(normalise, one.answers)) for one in self._dev]
        return sum(hits) / len(hits)

    def answer(self, asked: Asked) -> str:
        """Of what the generator writes for each passage the answer of highest P(a|q); "" where it writes nothing."""
        inputs = self._inputs(self._writer, asked)
        written = self._generator.generate(**inputs, max_new_tokens=ANSWER, do_sample=False)
        texts = self._writer.batch_decode(written, skip_special_tokens=True)
        distinct = list(dict.fromkeys(text.strip() for text in texts if text.strip()))
        rows = [self._log_likelihoods(inputs, text).clamp(max=0).tolist() for text in distinct]
        found = best(marginal(self._first(asked)[0].tolist(), rows))
        return "" if found is None else distinct[found]

    def _loss(self, asked: Asked) -> Tensor:
        scores, logits = self._first(asked)
        logs = self._log_likelihoods(self._inputs(self._writer, asked), asked.answers[0])
        present = torch.ones(1, len(asked.passages), dtype=torch.bool, device=self._device)
        plan = self._plan
        return (
            generation_loss(scores[None], logs[None], present)
            + plan.alpha1 * relevance_loss(scores[None], logs[None], present)
            + plan.alpha2 * token_loss(logits[None], self._words, present)
        )

    def _first(self, asked: Asked) -> tuple[Tensor, Tensor]:
        """s_j, (passages,), and the logits of the estimator's first token, (passages, vocabulary)."""
        logits = seq2seq.first_logits(self._estimator, self._inputs(self._reader, asked))
        return seq2seq.scores(logits, self._words), logits

    def _log_likelihoods(self, inputs: Any, answer: str) -> Tensor:
        """F_j = log P_G(a|q,c_j) of one answer after each passage, (passages,), in nats (equation 8)."""
        ids = self._writer(answer, truncation=True, max_length=ANSWER, return_tensors="pt")["input_ids"]
        labels = ids.to(self._device).repeat(len(inputs["input_ids"]), 1)
        odds = self._generator(**inputs, labels=labels).logits.float().log_softmax(-1)
        found: Tensor = odds.gather(-1, labels[..., None])[..., 0].sum(-1)
        return found

    def _inputs(self, tokenizer: Any, asked: Asked) -> Any:
        return seq2seq.encoded(tokenizer, asked.question, asked.passages, self._device, self._plan.length)

    def _mode(self, *, training: bool) -> None:
        for model in (self._estimator, self._generator):
            model.train(training)

    # --- an epoch, and what is kept of it ------------------------------------------------------------------------

    def _epoch(self, progress: Progress) -> float:
        number = len(self._history)
        torch.manual_seed(self._plan.seed * 1_000_003 + number)
        self._mode(training=True)
        order = list(self._train)
        random.Random(f"{self._plan.seed} {number}").shuffle(order)  # noqa: S311 - an experiment, not a secret
        total = 0.0
        for start in range(0, len(order), self._plan.batch):
            progress(number * len(order) + start, self._plan.epochs * len(order))
            total += self._learn(order[start : start + self._plan.batch])
        return total / len(order)

    def _learn(self, batch: Sequence[Asked]) -> float:
        self._optimizer.zero_grad()
        total = 0.0
        for one in batch:
            found = self._loss(one)
            (found / len(batch)).backward()  # type: ignore[no-untyped-call]
            total += found.item()
        self._optimizer.step()
        return total

    def _keep(self, epoch: JointEpoch) -> None:
        self._history.append(epoch)
        if epoch.best:
            save(self._folder / ESTIMATOR, self._estimator, self._reader)
            save(self._folder / GENERATOR, self._generator, self._writer)
        history = [asdict(one) for one in self._history]
        (self._folder / HISTORY).write_text(json.dumps(history, indent=2) + "\n", encoding="utf-8")
        state = {
            "estimator": self._estimator.state_dict(),
            "generator": self._generator.state_dict(),
            "optimizer": self._optimizer.state_dict(),
            "history": history,
        }
        checkpoint.save(self._folder, self._claim(), state)

    def _resume(self) -> None:
        state = checkpoint.load(self._folder, self._claim(), self._device)
        if state is None:
            return
        self._estimator.load_state_dict(state["estimator"])
        self._generator.load_state_dict(state["generator"])
        self._optimizer.load_state_dict(state["optimizer"])
        self._history = _EPOCHS.validate_python(state["history"])

    def _claim(self) -> dict[str, Any]:
        plan = {key: value for key, value in asdict(self._plan).items() if key != "epochs"}
        return {**plan, "train": _digest(self._train), "dev": _digest(self._dev)}


_EPOCHS: TypeAdapter[list[JointEpoch]] = TypeAdapter(list[JointEpoch])


def _usable(asked: Sequence[Asked]) -> list[Asked]:
    return [one for one in asked if one.answers and one.passages]


def _digest(asked: Sequence[Asked]) -> str:
    facts = [(one.question, one.answers, [passage.id for passage in one.passages]) for one in asked]
    return sha256(repr(facts).encode("utf-8", "replace")).hexdigest()
