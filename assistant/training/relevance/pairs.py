"""Pairs of a question and a passage for the larger relevance estimator, made from question sets that name both.

What doesn't answer is near: what BM25 finds for the question and what lacks the answer, in all sets together; the
paragraph that leaves a question of SQuAD 2.0 open; another aspect of the same disease (MedQuAD). Some passages are a
single sentence, since an estimator is asked of sentences, too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

from assistant.errors import DataError, disk_errors_as
from assistant.judges.support.trained import claimed
from assistant.library.corpus import load_corpus
from assistant.protocols import Progress, Retriever
from assistant.text.sentences import normalise, quote, sentences
from assistant.training.support.pairs import FALSE, TRUE, Asked, Material
from assistant.training.trainer import Labelled
from assistant.types import Passage

CORPUS = "searched.jsonl"
# What BM25 finds first, from which so many passages are drawn that don't answer.
_FOUND, _DRAWN = 10, 2
# Questions on diseases, so that they don't outweigh the other sets; how often sentences are shown alone.
_REPLIES, _ALONE = 2000, 0.5


def searched(material: Material, data: Path, folder: Path) -> Path:
    """A corpus in the folder with the passages of the material and all of NQ's, to search for what is near.

    Raises:
        DataError: it can't be written, or NQ's corpus not be read.
    """
    of_nq = load_corpus(data / "nq" / "corpus.jsonl.gz")
    passages = {one.id: one for one in (*material.plain, *(passage for _, passage in material.replies), *of_nq)}
    rows = ({"id": one.id, "title": one.title, "contents": one.text} for one in passages.values())
    with disk_errors_as(DataError, f"{folder} can't be written to"):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / CORPUS).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return folder / CORPUS


def make(material: Material, retriever: Retriever, seed: int, progress: Progress) -> list[Labelled]:
    """All pairs of the material, in an order that the seed decides."""
    chance = Random(seed)  # noqa: S311 - an experiment, not a secret
    asked = list({(one.question, one.passage.id): one for one in material.asked}.values())
    replies = chance.sample(material.replies, min(len(material.replies), _REPLIES))
    found = list[Labelled]()
    for done, one in enumerate(asked):
        progress(done, len(asked) + len(replies))
        found += _of_question(one, retriever, chance)
    for done, (question, passage) in enumerate(replies, start=len(asked)):
        progress(done, len(asked) + len(replies))
        others = [other for other in material.around[passage.id] if other.text != passage.text]
        found += _of_reply(question, passage, others, retriever, chance)
    found = list(dict.fromkeys(found))
    return chance.sample(found, len(found))


def _of_question(one: Asked, retriever: Retriever, chance: Random) -> Iterator[Labelled]:
    if not one.answer:
        yield _pair(one.question, one.passage, FALSE)
        return
    yield _pair(one.question, one.passage, TRUE)
    answer = normalise(one.answer)
    near = [other for other in retriever.search(one.question, _FOUND) if answer not in normalise(other.titled)]
    yield from (_pair(one.question, other, FALSE) for other in _some(near, one.passage, chance))
    if chance.random() < _ALONE:
        yield from _sentences(one, chance)


def _sentences(one: Asked, chance: Random) -> Iterator[Labelled]:
    """The sentence that has the answer, and one of the same passage that doesn't."""
    texts = [quote(one.passage.text, span) for span in sentences(one.passage.text)]
    right = [text for text in texts if one.answer in text]
    wrong = [text for text in texts if one.answer not in text]
    for some, label in ((right, TRUE), (wrong, FALSE)):
        if some:
            yield _pair(one.question, Passage("", one.passage.title, chance.choice(some)), label)


def _of_reply(
    question: str, passage: Passage, others: Sequence[Passage], retriever: Retriever, chance: Random
) -> Iterator[Labelled]:
    yield _pair(question, passage, TRUE)
    if others:
        yield _pair(question, chance.choice(others), FALSE)
    near = [other for other in retriever.search(question, _FOUND) if other.title.lower() != passage.title.lower()]
    yield from (_pair(question, other, FALSE) for other in _some(near, passage, chance)[:1])


def _some(near: Sequence[Passage], right: Passage, chance: Random) -> list[Passage]:
    others = [one for one in near if one.id != right.id]
    return chance.sample(others, min(len(others), _DRAWN))


def _pair(question: str, passage: Passage, label: float) -> Labelled:
    return Labelled(claimed("", question), passage.titled, label)
