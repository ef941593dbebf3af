"""Claims and passages that were written for Sequitur, for what the recipe's changes by code never look like.

They lie in written.jsonl beside this file, one passage a line, each with some true, half-true and false claims, in the
words of a reply; `kind` says what makes a claim true or false, and "reply" that the default model wrote it itself, as
a reply to the question, with the passage among its notes:

    {"title": "Ferry", "text": "Bicycles travel free from nine ...", "claims": [["not", "May I bring it at eight?",
     "Yes, bicycles are free.", "condition"], ...]}
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

from assistant.evaluation.support import Label
from assistant.experiment.datasets import read_models
from assistant.judges.support.trained import claimed
from assistant.training.support.pairs import FALSE, PARTLY, TRUE, Split, fold
from assistant.training.trainer import Labelled

PATH = Path(__file__).with_name("written.jsonl")
_LABELS = {"supported": TRUE, "partly": PARTLY, "not": FALSE}
# Whether a reply would answer if it were the passage itself: one that tells something else than was asked wouldn't, one
# that is made up would. Of other kinds it depends.
_ALONE = dict.fromkeys(("paraphrase", "inferred", "quoted", "swapped", "invented"), TRUE) | {"beside": FALSE}
# Words of a reply that can stand for a passage.
_SENTENCE = 5
_REPLIED = "reply"
# The labels as pairs for measuring have them.
NAMES: dict[str, Label] = {"supported": "supported", "partly": "partially_supported", "not": "not_supported"}


@dataclass(frozen=True, slots=True)
class Written:
    """A passage and its claims: label, question ("" for none), claim, kind."""

    title: str
    text: str
    claims: tuple[tuple[str, str, str, str], ...]

    @property
    def titled(self) -> str:
        """Title and text in one, as the judge reads them."""
        return f"{self.title}: {self.text}"


def written(split: Split) -> list[Written]:
    """The passages of a split: a tenth of them for "dev", the others for "train"; none for "test"."""
    found = read_models(PATH, Written, "no passage with claims")
    return [one for one in found if ("dev" if fold(one.text, 10) == 0 else "train") == split]


def pairs(passages: list[Written], seed: int) -> list[Labelled]:
    """Each claim beside its passage, whole replies beside themselves, and questions beside passages.

    Of a question that has a true reply, its passage answers it, and another passage doesn't. The most similar passage
    says nothing of what a model truly replied, nor of another true claim of the passage.
    """
    chance = Random(seed)  # noqa: S311 - an experiment, not a secret
    near = _nearest(passages)
    return list(
        dict.fromkeys(
            pair for one, other in zip(passages, near, strict=True) for pair in _pairs(one, other, passages, chance)
        )
    )


def _nearest(passages: list[Written]) -> list[Written]:
    """For each passage the one whose words are most like its own."""
    from sklearn.feature_extraction.text import TfidfVectorizer  # noqa: PLC0415 - takes a second to import

    if len(passages) < 2:
        return passages
    vectors = TfidfVectorizer(sublinear_tf=True, stop_words="english").fit_transform(one.titled for one in passages)
    alike = (vectors @ vectors.T).toarray()
    alike[range(len(passages)), range(len(passages))] = -1.0
    return [passages[n] for n in alike.argmax(axis=1)]


def _pairs(one: Written, near: Written, passages: list[Written], chance: Random) -> Iterator[Labelled]:
    for label, question, claim, _ in one.claims:
        yield Labelled(claimed(claim, question), one.titled, _LABELS[label])
    if near is not one:
        yield from (Labelled(claimed(claim, asked), near.titled, FALSE) for asked, claim in _told(one, chance))
    for _, question, claim, kind in one.claims:
        if question and kind in _ALONE and len(claim.split()) >= _SENTENCE:
            yield Labelled(claimed(claim, question), f"{one.title}: {claim}", _ALONE[kind])
    for question in dict.fromkeys(asked for label, asked, _, _ in one.claims if asked and label == "supported"):
        yield Labelled(claimed("", question), one.titled, TRUE)
        yield Labelled(claimed("", question), chance.choice(passages).titled, FALSE)


def _told(one: Written, chance: Random) -> list[tuple[str, str]]:
    """Questions and true replies that no other passage backs: those of a model, and one of the others."""
    true = [
        (question, claim, kind)
        for label, question, claim, kind in one.claims
        if label == "supported" and len(claim.split()) >= _SENTENCE
    ]
    others = [(question, claim) for question, claim, kind in true if kind != _REPLIED]
    drawn = [chance.choice(others)] if others else []
    return [(question, claim) for question, claim, kind in true if kind == _REPLIED] + drawn
