"""Short documents whose sentences are judged as replies to questions, as where a sentence is quoted.

They lie in quoted.jsonl beside this file, in notes.jsonl those whose sentences are lines of lists, plans and notes, and
in advice.jsonl passages of general advice, one document a line. A question has the sentences, numbered from 0, each of
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
from assistant.training.support.apart import is_in_split
from assistant.training.support.pairs import FALSE, PARTLY, TRUE, Split
from assistant.training.trainer import LabelledPair

PATHS = tuple(Path(__file__).with_name(name) for name in ("quoted.jsonl", "notes.jsonl", "advice.jsonl"))
# How often a sentence stands beside its whole document, too.
_WHOLE_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class QuotedDocument:
    """A document in sentences, and its questions with the sentences that answer, and those that do in part."""

    title: str
    sentences: tuple[str, ...]
    questions: tuple[tuple[str, tuple[int, ...], tuple[int, ...]], ...]

    @property
    def titled(self) -> str:
        """Title and text in one, as the judge reads them."""
        return f"{self.title}: {' '.join(self.sentences)}"


def read_quoted(split: Split, paths: Sequence[Path] = PATHS) -> list[QuotedDocument]:
    """The documents of a split: a tenth of them for "dev", others for "train"; none for "test" (see `apart`)."""
    documents = [
        document for path in paths for document in read_models(path, QuotedDocument, "no document with questions")
    ]
    return [document for document in documents if is_in_split(document.title, document.titled, split)]


def pairs(documents: Sequence[QuotedDocument], seed: int) -> list[LabelledPair]:
    """Sentences as replies to questions, each beside itself, and questions beside their documents.

    The false ones are the sentence that has most words of the question without answering it, and any other: both where
    the document leaves the question open, one of them otherwise.
    """
    chance = Random(seed)  # noqa: S311 - an experiment, not a secret
    return list(dict.fromkeys(pair for document in documents for pair in _pairs(document, chance)))


def _pairs(document: QuotedDocument, chance: Random) -> Iterator[LabelledPair]:
    for question, answer_numbers, partial_numbers in document.questions:
        labels = dict.fromkeys(partial_numbers, PARTLY) | dict.fromkeys(answer_numbers, TRUE)
        for n in (*labels, *wrong_sentences(document, question, labels.keys(), chance)):
            reply = claimed(document.sentences[n], question)
            yield LabelledPair(reply, f"{document.title}: {document.sentences[n]}", labels.get(n, FALSE))
            if chance.random() < _WHOLE_SHARE:
                yield LabelledPair(reply, document.titled, labels.get(n, FALSE))
        if answer_numbers or not partial_numbers:
            yield LabelledPair(claimed("", question), document.titled, TRUE if answer_numbers else FALSE)


def wrong_sentences(
    document: QuotedDocument, question: str, labelled_numbers: Collection[int], chance: Random
) -> list[int]:
    """The numbers of sentences that don't answer, the one that is most like the question first."""
    words = set(normalise(question).split())
    other_numbers = [n for n in range(len(document.sentences)) if n not in labelled_numbers]
    other_numbers.sort(key=lambda n: len(words & set(normalise(document.sentences[n]).split())), reverse=True)
    if labelled_numbers:
        return other_numbers[:1] if chance.random() < 0.5 else [chance.choice(other_numbers)] if other_numbers else []
    return other_numbers[:1] + ([chance.choice(other_numbers[1:])] if other_numbers[1:] else [])
