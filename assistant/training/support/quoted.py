"""Short documents whose sentences are judged as replies to questions, as where a sentence is quoted.

They lie in quoted.jsonl beside this file, one document a line. A question has the sentences, numbered from 0, each of
which answers it alone, and those that answer a part of it; a question that has neither is left open by the document:

    {"title": "Ferry", "sentences": ["Bicycles travel free.", "Dogs pay 3 euros."],
     "questions": [["What does a dog cost?", [1], []], ["Can I bring my cat?", [], []]]}
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from assistant.experiment.datasets import read_models
from assistant.judges.support.trained import claimed
from assistant.text.sentences import normalise
from assistant.training.support.pairs import FALSE, PARTLY, TRUE, Split, fold
from assistant.training.trainer import Labelled

PATH = Path(__file__).with_name("quoted.jsonl")
# How often a sentence stands beside its whole document, too.
_WHOLE = 0.25


@dataclass(frozen=True, slots=True)
class Quoted:
    """A document in sentences, and its questions with the sentences that answer, and those that do in part."""

    title: str
    sentences: tuple[str, ...]
    questions: tuple[tuple[str, tuple[int, ...], tuple[int, ...]], ...]

    @property
    def titled(self) -> str:
        """Title and text in one, as the judge reads them."""
        return f"{self.title}: {' '.join(self.sentences)}"


def quoted(split: Split) -> list[Quoted]:
    """The documents of a split: a tenth of them for "dev", the others for "train"; none for "test"."""
    found = read_models(PATH, Quoted, "no document with questions")
    return [one for one in found if ("dev" if fold(one.titled, 10) == 0 else "train") == split]


def pairs(documents: Sequence[Quoted], seed: int) -> list[Labelled]:
    """Sentences as replies to questions, each beside itself, and questions beside their documents.

    The false ones are the sentence that has most words of the question without answering it, and any other: both where
    the document leaves the question open, one of them otherwise.
    """
    chance = Random(seed)  # noqa: S311 - an experiment, not a secret
    return list(dict.fromkeys(pair for one in documents for pair in _pairs(one, chance)))


def _pairs(one: Quoted, chance: Random) -> Iterator[Labelled]:
    for question, right, partly in one.questions:
        labels = dict.fromkeys(partly, PARTLY) | dict.fromkeys(right, TRUE)
        for n in (*labels, *_beside(one, question, labels.keys(), chance)):
            reply = claimed(one.sentences[n], question)
            yield Labelled(reply, f"{one.title}: {one.sentences[n]}", labels.get(n, FALSE))
            if chance.random() < _WHOLE:
                yield Labelled(reply, one.titled, labels.get(n, FALSE))
        if right or not partly:
            yield Labelled(claimed("", question), one.titled, TRUE if right else FALSE)


def _beside(one: Quoted, question: str, known: Collection[int], chance: Random) -> list[int]:
    """Sentences that don't answer, the one that is most like the question first."""
    words = set(normalise(question).split())
    others = [n for n in range(len(one.sentences)) if n not in known]
    others.sort(key=lambda n: len(words & set(normalise(one.sentences[n]).split())), reverse=True)
    if known:
        return others[:1] if chance.random() < 0.5 else [chance.choice(others)] if others else []
    return others[:1] + ([chance.choice(others[1:])] if others[1:] else [])
