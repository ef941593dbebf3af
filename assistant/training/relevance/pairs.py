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
from assistant.training.support.pairs import FALSE, TRUE, Material, PassageQuestion
from assistant.training.support.quoted import QuotedDocument, wrong_sentences
from assistant.training.support.written import WrittenPassage, nearest_passages
from assistant.training.trainer import LabelledPair
from assistant.types import Passage

CORPUS = "searched.jsonl"
# What BM25 finds first, from which so many passages are drawn that don't answer.
_SEARCHED, _MAX_NEGATIVES = 10, 2
# Questions on diseases, so that they don't outweigh the other sets; how often sentences are shown alone.
_MAX_REPLIES, _SENTENCE_SHARE = 2000, 0.5
# How often a question on a short document is shown with all of it, besides its sentences, and with another one.
_WHOLE_SHARE, _OTHER_SHARE = 0.5, 0.5
# Texts that a message is shown with which asks nothing of any document.
_TEXTS_PER_MESSAGE = 6


def write_search_corpus(material: Material, data: Path, folder: Path) -> Path:
    """A corpus in the folder with the passages of the material and all of NQ's, to search for what is near.

    Raises:
        DataError: it can't be written, or NQ's corpus not be read.
    """
    nq_passages = load_corpus(data / "nq" / "corpus.jsonl.gz")
    passages = {
        passage.id: passage
        for passage in (*material.passages, *(passage for _, passage in material.replies), *nq_passages)
    }
    rows = ({"id": passage.id, "title": passage.title, "contents": passage.text} for passage in passages.values())
    with disk_errors_as(DataError, f"{folder} can't be written to"):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / CORPUS).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return folder / CORPUS


def make_pairs(material: Material, retriever: Retriever, seed: int, progress: Progress) -> list[LabelledPair]:
    """All pairs of the material, in an order that the seed decides."""
    chance = Random(seed)  # noqa: S311 - an experiment, not a secret
    examples = list({(example.question, example.passage.id): example for example in material.questions}.values())
    replies = chance.sample(material.replies, min(len(material.replies), _MAX_REPLIES))
    pairs = list[LabelledPair]()
    for done, example in enumerate(examples):
        progress(done, len(examples) + len(replies))
        pairs += _question_pairs(example, retriever, chance)
    for done, (question, passage) in enumerate(replies, start=len(examples)):
        progress(done, len(examples) + len(replies))
        other_passages = [other for other in material.related_passages[passage.id] if other.text != passage.text]
        pairs += _reply_pairs(question, passage, other_passages, retriever, chance)
    pairs = list(dict.fromkeys(pairs))
    return chance.sample(pairs, len(pairs))


def quoted_pairs(
    documents: Sequence[QuotedDocument], messages: Sequence[str], passages: Sequence[str], seed: int
) -> list[LabelledPair]:
    """Questions with the sentences of their document that answer, with some that don't, and with all of it.

    Besides, questions with sentences of other documents or with `passages` of a library, and `messages`, which ask
    nothing of any document, such as thanks. Half of all stand as they were typed, the others with a question mark, so
    that it tells nothing.
    """
    chance = Random(seed)  # noqa: S311 - an experiment, not a secret
    pairs = [pair for document in documents for pair in _document_pairs(document, documents, passages, chance)]
    pairs += [
        _typed(message, _drawn_text(documents, passages, chance), FALSE, chance)
        for message in messages
        for _ in range(_TEXTS_PER_MESSAGE)
    ]
    return list(dict.fromkeys(pairs))


def written_pairs(passages: list[WrittenPassage], seed: int) -> list[LabelledPair]:
    """Questions that a passage answers with it, and with the passage that is most like it."""
    chance = Random(seed)  # noqa: S311 - an experiment, not a secret
    return [
        _typed(question, text, label, chance)
        for passage, nearest in zip(passages, nearest_passages(passages), strict=True)
        for question in passage.answered_questions
        for text, label in ((passage.titled, TRUE), (nearest.titled, FALSE))
    ]


def _document_pairs(
    document: QuotedDocument, documents: Sequence[QuotedDocument], passages: Sequence[str], chance: Random
) -> Iterator[LabelledPair]:
    others = [other for other in documents if other is not document]
    for question, answer_numbers, partial_numbers in document.questions:
        wrong_numbers = wrong_sentences(document, question, {*answer_numbers, *partial_numbers}, chance)
        for n in (*answer_numbers, *wrong_numbers):
            text = f"{document.title}: {document.sentences[n]}"
            yield _typed(question, text, TRUE if n in answer_numbers else FALSE, chance)
        if (answer_numbers or not partial_numbers) and chance.random() < _WHOLE_SHARE:
            yield _typed(question, document.titled, TRUE if answer_numbers else FALSE, chance)
        if others and chance.random() < _OTHER_SHARE:
            yield _typed(question, _drawn_text(others, passages, chance), FALSE, chance)


def _drawn_text(documents: Sequence[QuotedDocument], passages: Sequence[str], chance: Random) -> str:
    """A passage of a library, a document, or a sentence of one."""
    if chance.random() < 0.5:
        return chance.choice(passages)
    document = chance.choice(documents)
    return document.titled if chance.random() < 0.5 else f"{document.title}: {chance.choice(document.sentences)}"


def _typed(message: str, text: str, label: float, chance: Random) -> LabelledPair:
    return LabelledPair(message if chance.random() < 0.5 else claimed("", message), text, label)


def _question_pairs(example: PassageQuestion, retriever: Retriever, chance: Random) -> Iterator[LabelledPair]:
    if not example.answer:
        yield _pair(example.question, example.passage, FALSE)
        return
    yield _pair(example.question, example.passage, TRUE)
    answer = normalise(example.answer)
    near_passages = [
        other for other in retriever.search(example.question, _SEARCHED) if answer not in normalise(other.titled)
    ]
    yield from (
        _pair(example.question, other, FALSE) for other in _drawn_negatives(near_passages, example.passage, chance)
    )
    if chance.random() < _SENTENCE_SHARE:
        yield from _sentence_pairs(example, chance)


def _sentence_pairs(example: PassageQuestion, chance: Random) -> Iterator[LabelledPair]:
    """The sentence that has the answer, and one of the same passage that doesn't."""
    texts = [quote(example.passage.text, span) for span in sentences(example.passage.text)]
    right_texts = [text for text in texts if example.answer in text]
    wrong_texts = [text for text in texts if example.answer not in text]
    for candidates, label in ((right_texts, TRUE), (wrong_texts, FALSE)):
        if candidates:
            yield _pair(example.question, Passage("", example.passage.title, chance.choice(candidates)), label)


def _reply_pairs(
    question: str, passage: Passage, other_passages: Sequence[Passage], retriever: Retriever, chance: Random
) -> Iterator[LabelledPair]:
    yield _pair(question, passage, TRUE)
    if other_passages:
        yield _pair(question, chance.choice(other_passages), FALSE)
    near_passages = [
        other for other in retriever.search(question, _SEARCHED) if other.title.lower() != passage.title.lower()
    ]
    yield from (_pair(question, other, FALSE) for other in _drawn_negatives(near_passages, passage, chance)[:1])


def _drawn_negatives(passages: Sequence[Passage], right_passage: Passage, chance: Random) -> list[Passage]:
    other_passages = [passage for passage in passages if passage.id != right_passage.id]
    return chance.sample(other_passages, min(len(other_passages), _MAX_NEGATIVES))


def _pair(question: str, passage: Passage, label: float) -> LabelledPair:
    return LabelledPair(claimed("", question), passage.titled, label)
