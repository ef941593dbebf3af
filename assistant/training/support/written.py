"""Claims and passages that were written for Sequitur, for what the recipe's changes by code never look like.

They lie beside this file, one passage a line: in written.jsonl, those on pieces of lists and notes in
written_notes.jsonl, and those whose questions are mostly in everyday words in files whose names begin with
written_asked. Each has some true, half-true and false claims, in the words of a reply; `kind` says what makes a claim
true or false, "restated" that it says the question again as a statement, as a small model mostly does, beside one that
differs in the answer alone, and "reply" that the default model wrote it itself, with the passage among its notes.

Files whose names begin with written_addressed have replies that the passage mostly says, and tell those that answer
from those that don't: "one_part" answers half of a question of two parts, "other_question" is the same true sentence
under a question that it answers and under one that it doesn't, and "circumstance" holds for another case than the one
that was asked about:

    {"title": "Ferry", "text": "Bicycles travel free from nine ...", "claims": [["not", "May I bring it at eight?",
     "Yes, bicycles are free.", "condition"], ...]}
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from assistant.evaluation.support import Label
from assistant.experiment.datasets import read_models
from assistant.judges.support.trained import claimed
from assistant.training.support.apart import is_in_split
from assistant.training.support.pairs import FALSE, PARTLY, TRUE, Split
from assistant.training.trainer import LabelledPair

PATHS = tuple(sorted(Path(__file__).parent.glob("written*.jsonl")))
_LABELS = {"supported": TRUE, "partly": PARTLY, "not": FALSE}
# Whether a reply would answer if it were the passage itself: one that tells something else than was asked wouldn't, one
# that is made up would. Of other kinds it depends.
_TELLING_KINDS = ("paraphrase", "inferred", "quoted", "swapped", "invented", "two_parts")
_LABELS_ALONE = dict.fromkeys(_TELLING_KINDS, TRUE) | {"beside": FALSE}
# Of these kinds it is the label that says so: they are true, and answer or don't.
_ANSWERS_AS_LABELLED = ("one_part", "other_question", "circumstance")
# Words, at least, of a reply that can stand for a passage.
_MIN_WORDS = 5
# What the default model wrote itself.
REPLY_KIND = "reply"
# The labels as pairs for measuring have them.
PAIR_LABELS: dict[str, Label] = {"supported": "supported", "partly": "partially_supported", "not": "not_supported"}


@dataclass(frozen=True, slots=True)
class WrittenPassage:
    """A passage and its claims: label, question ("" for none), claim, kind."""

    title: str
    text: str
    claims: tuple[tuple[str, str, str, str], ...]

    @property
    def titled(self) -> str:
        """Title and text in one, as the judge reads them."""
        return f"{self.title}: {self.text}"

    @property
    def answered_questions(self) -> tuple[str, ...]:
        """The questions to which the passage supports a reply."""
        supported = (question for label, question, *_ in self.claims if question and label == "supported")
        return tuple(dict.fromkeys(supported))


def read_written(split: Split, paths: Sequence[Path] = PATHS) -> list[WrittenPassage]:
    """The passages of a split: a tenth of them for "dev", others for "train"; none for "test" (see `apart`)."""
    passages = [passage for path in paths for passage in read_models(path, WrittenPassage, "no passage with claims")]
    return [passage for passage in passages if is_in_split(passage.title, passage.text, split)]


def pairs(passages: list[WrittenPassage], seed: int) -> list[LabelledPair]:
    """Each claim beside its passage, and whole replies beside themselves; two halves of an answer make a whole one.

    The most similar passage says nothing of what a model truly replied, nor of another true claim of the passage.
    """
    chance = Random(seed)  # noqa: S311 - an experiment, not a secret
    neighbours = nearest_passages(passages)
    return list(
        dict.fromkeys(
            pair
            for passage, neighbour in zip(passages, neighbours, strict=True)
            for pair in _pairs(passage, neighbour, chance)
        )
    )


def nearest_passages(passages: list[WrittenPassage]) -> list[WrittenPassage]:
    """For each passage the one whose words are most like its own."""
    from sklearn.feature_extraction.text import TfidfVectorizer  # noqa: PLC0415 - takes a second to import

    if len(passages) < 2:
        return passages
    vectors = TfidfVectorizer(sublinear_tf=True, stop_words="english").fit_transform(
        passage.titled for passage in passages
    )
    similarities = (vectors @ vectors.T).toarray()
    similarities[range(len(passages)), range(len(passages))] = -1.0
    return [passages[position] for position in similarities.argmax(axis=1)]


def _pairs(passage: WrittenPassage, neighbour: WrittenPassage, chance: Random) -> Iterator[LabelledPair]:
    claims = [*passage.claims, *_joined_halves(passage)]
    for label, question, claim, _ in claims:
        yield LabelledPair(claimed(claim, question), passage.titled, _LABELS[label])
    if neighbour is not passage:
        yield from (
            LabelledPair(claimed(claim, question), neighbour.titled, FALSE)
            for question, claim in _unbacked_replies(passage, chance)
        )
    for label, question, claim, kind in claims:
        label_alone = _LABELS[label] if kind in _ANSWERS_AS_LABELLED else _LABELS_ALONE.get(kind)
        if question and label_alone is not None and len(claim.split()) >= _MIN_WORDS:
            yield LabelledPair(claimed(claim, question), f"{passage.title}: {claim}", label_alone)


def _joined_halves(passage: WrittenPassage) -> Iterator[tuple[str, str, str, str]]:
    """A whole answer of two sentences for each question of which the passage has both halves of an answer."""
    halves = [(question, claim) for _, question, claim, kind in passage.claims if kind == "one_part"]
    for question in dict.fromkeys(question for question, _ in halves):
        claims = [claim for other, claim in halves if other == question]
        if len(claims) == 2:
            yield "supported", question, " ".join(claims), "two_parts"


def _unbacked_replies(passage: WrittenPassage, chance: Random) -> list[tuple[str, str]]:
    """Questions and true replies that no other passage backs: those of a model, and one of the others."""
    true_claims = [
        (question, claim, kind)
        for label, question, claim, kind in passage.claims
        if label == "supported" and len(claim.split()) >= _MIN_WORDS
    ]
    other_claims = [(question, claim) for question, claim, kind in true_claims if kind != REPLY_KIND]
    drawn_claims = [chance.choice(other_claims)] if other_claims else []
    return [(question, claim) for question, claim, kind in true_claims if kind == REPLY_KIND] + drawn_claims
