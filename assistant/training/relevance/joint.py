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
MAX_ANSWER_TOKENS = 24


@dataclass(frozen=True, slots=True)
class JointExample:
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

    def __init__(
        self, folder: Path, plan: JointPlan, train: Sequence[JointExample], dev: Sequence[JointExample]
    ) -> None:
        self._folder, self._plan = folder, plan
        self._train, self._dev = _usable(train), _usable(dev)
        if not self._train or not self._dev:
            raise DataError("No question has both an answer and a passage; take more questions.")
        self._device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self._estimator_tokenizer, self._estimator = seq2seq.load(Path(plan.estimator))
        self._generator_tokenizer, self._generator = seq2seq.load(Path(plan.generator))
        self._true_false_ids = seq2seq.word_ids(self._estimator_tokenizer)
        for model in (self._estimator, self._generator):
            model.to(self._device)
        weights = chain(self._estimator.parameters(), self._generator.parameters())
        self._optimizer = torch.optim.AdamW(weights, lr=plan.rate, weight_decay=plan.decay)
        self._history = list[JointEpoch]()
        self._resume()

    def run(self, progress: Progress) -> list[JointEpoch]:
        """Train the epochs that are left, and say what every epoch came to."""
        while len(self._history) < self._plan.epochs:
            mean_loss = self._epoch(progress)
            em = self.exact_match()
            self._save_epoch(
                JointEpoch(len(self._history) + 1, mean_loss, em, all(em > epoch.em for epoch in self._history))
            )
        return list(self._history)

    def loss(self, examples: Sequence[JointExample]) -> Tensor:
        """Equation 12 on these questions, the mean over them, with gradients into both models."""
        return torch.stack([self._loss(example) for example in examples]).mean()

    def exact_match(self) -> float:
        """The share of development questions whose likeliest answer (equation 6) is an accepted one."""
        self._set_mode(training=False)
        with torch.inference_mode():
            hits = [normalise(self.answer(example)) in set(map(normalise, example.answers)) for example in self._dev]
        return sum(hits) / len(hits)

    def answer(self, example: JointExample) -> str:
        """Of what the generator writes for each passage the answer of highest P(a|q); "" where it writes nothing."""
        inputs = self._inputs(self._generator_tokenizer, example)
        output_ids = self._generator.generate(**inputs, max_new_tokens=MAX_ANSWER_TOKENS, do_sample=False)
        texts = self._generator_tokenizer.batch_decode(output_ids, skip_special_tokens=True)
        distinct = list(dict.fromkeys(text.strip() for text in texts if text.strip()))
        rows = [self._log_likelihoods(inputs, text).clamp(max=0).tolist() for text in distinct]
        best_position = best(marginal(self._scores_and_logits(example)[0].tolist(), rows))
        return "" if best_position is None else distinct[best_position]

    def _loss(self, example: JointExample) -> Tensor:
        scores, logits = self._scores_and_logits(example)
        log_likelihoods = self._log_likelihoods(self._inputs(self._generator_tokenizer, example), example.answers[0])
        present = torch.ones(1, len(example.passages), dtype=torch.bool, device=self._device)
        plan = self._plan
        return (
            generation_loss(scores[None], log_likelihoods[None], present)
            + plan.alpha1 * relevance_loss(scores[None], log_likelihoods[None], present)
            + plan.alpha2 * token_loss(logits[None], self._true_false_ids, present)
        )

    def _scores_and_logits(self, example: JointExample) -> tuple[Tensor, Tensor]:
        """s_j, (passages,), and the logits of the estimator's first token, (passages, vocabulary)."""
        logits = seq2seq.first_logits(self._estimator, self._inputs(self._estimator_tokenizer, example))
        return seq2seq.scores(logits, self._true_false_ids), logits

    def _log_likelihoods(self, inputs: Any, answer: str) -> Tensor:
        """F_j = log P_G(a|q,c_j) of one answer after each passage, (passages,), in nats (equation 8)."""
        ids = self._generator_tokenizer(answer, truncation=True, max_length=MAX_ANSWER_TOKENS, return_tensors="pt")[
            "input_ids"
        ]
        labels = ids.to(self._device).repeat(len(inputs["input_ids"]), 1)
        log_probabilities = self._generator(**inputs, labels=labels).logits.float().log_softmax(-1)
        log_likelihoods: Tensor = log_probabilities.gather(-1, labels[..., None])[..., 0].sum(-1)
        return log_likelihoods

    def _inputs(self, tokenizer: Any, example: JointExample) -> Any:
        return seq2seq.encoded(tokenizer, example.question, example.passages, self._device, self._plan.length)

    def _set_mode(self, *, training: bool) -> None:
        for model in (self._estimator, self._generator):
            model.train(training)

    # --- an epoch, and what is kept of it ------------------------------------------------------------------------

    def _epoch(self, progress: Progress) -> float:
        number = len(self._history)
        torch.manual_seed(self._plan.seed * 1_000_003 + number)
        self._set_mode(training=True)
        shuffled = list(self._train)
        random.Random(f"{self._plan.seed} {number}").shuffle(shuffled)  # noqa: S311 - an experiment, not a secret
        total_loss = 0.0
        for start in range(0, len(shuffled), self._plan.batch):
            progress(number * len(shuffled) + start, self._plan.epochs * len(shuffled))
            total_loss += self._learn(shuffled[start : start + self._plan.batch])
        return total_loss / len(shuffled)

    def _learn(self, batch: Sequence[JointExample]) -> float:
        self._optimizer.zero_grad()
        total_loss = 0.0
        for example in batch:
            loss = self._loss(example)
            (loss / len(batch)).backward()  # type: ignore[no-untyped-call]
            total_loss += loss.item()
        self._optimizer.step()
        return total_loss

    def _save_epoch(self, epoch: JointEpoch) -> None:
        self._history.append(epoch)
        if epoch.best:
            save(self._folder / ESTIMATOR, self._estimator, self._estimator_tokenizer)
            save(self._folder / GENERATOR, self._generator, self._generator_tokenizer)
        history = [asdict(past_epoch) for past_epoch in self._history]
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


def _usable(examples: Sequence[JointExample]) -> list[JointExample]:
    return [example for example in examples if example.answers and example.passages]


def _digest(examples: Sequence[JointExample]) -> str:
    contents = [
        (example.question, example.answers, [passage.id for passage in example.passages]) for example in examples
    ]
    return sha256(repr(contents).encode("utf-8", "replace")).hexdigest()
