"""The recipe: pairs of a claim and its evidence, made from question sets whose answers and passages are known.

After FactCG (Lei et al. 2025): claims are statements made of questions and their answers, and sentences of passages.
What makes one false is never seen in the claim alone, if that can be helped: most claims are there twice, once with a
passage that backs them and once with one that doesn't, because it is another, or lacks the very sentence.

    true    a question with its answer; the two as a statement; a sentence of the passage, lightened; two of those
    false   the answer of another question on the same passage; an unanswerable question (SQuAD 2.0) with the answer of
            the most similar question; a name, number, order or "not" changed; the sentence taken out of the passage
    partly  two sentences of which one is false, or taken out; a question of two hops with one hop taken away

A question by itself is a claim, too: that the passage answers it. One model so learns what the relevance estimator is
asked as well. Its negatives are near: another passage on the same matter, the passage without the sentence that
answers, a question of SQuAD 2.0 that its passage leaves open, another aspect of the same disease (MedQuAD).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any, Literal

from assistant.errors import DataError
from assistant.experiment.datasets import records
from assistant.judges.support.trained import claimed
from assistant.text.sentences import normalise, quote, sentences
from assistant.training.support.edits import lightened, names, wronged
from assistant.training.support.statements import statement
from assistant.training.trainer import Labelled
from assistant.types import Passage

Split = Literal["train", "dev", "test"]
TRUE, PARTLY, FALSE = 1.0, 0.3, 0.0
# Words of a reply by which the passage that begins with it is told from others.
_REPLY = 80
# Questions on diseases that one seed takes, so that they don't outweigh the other sets.
_REPLIES = 2000
# The share of evidence that is cut down to a few sentences around the one meant, and that is joined with other text.
_CUT, _JOINED = 0.5, 0.15
# How often a sentence that doesn't answer stands beside one that does, and letters of a word that counts.
_WRONG, _LONG = 0.8, 4
# Sentences that claims are made of, in words.
_SHORTEST, _LONGEST = 6, 40


@dataclass(frozen=True, slots=True)
class Asked:
    """A question on a passage, and the words of it that answer; no words where the passage doesn't tell."""

    question: str
    answer: str
    passage: Passage


@dataclass(frozen=True, slots=True)
class Hops:
    """A question that needs several passages together; `others` are on like matters and don't help."""

    question: str
    answer: str
    passages: tuple[Passage, ...]
    others: tuple[Passage, ...]


@dataclass(frozen=True, slots=True)
class Material:
    """What pairs are made of. `around` are the passages of the same work or question, by a passage's id.

    `replies` are questions with passages that answer them as a whole.
    """

    asked: tuple[Asked, ...]
    hops: tuple[Hops, ...]
    plain: tuple[Passage, ...]
    replies: tuple[tuple[str, Passage], ...] = ()
    around: Mapping[str, tuple[Passage, ...]] = field(default_factory=dict)


# --- reading -----------------------------------------------------------------------------------------------------


def read(folder: Path, split: Split) -> Material:
    """The questions of one split of squad/, nq/, hotpotqa/, 2wikimultihopqa/ and library/ in a folder.

    SQuAD is split by article: a fifth of them for "test", a fifth for "dev". Of the other sets a twentieth of the
    questions is "dev", and none "test"; passages with the title of a test article are left out everywhere. So are, of
    SQuAD and NQ, the third of articles and of questions that the relevance estimator is measured on.

    Raises:
        DataError: a file is missing or broken, or lacks what such a set has.
    """
    try:
        squad = _squad(folder / "squad", split)
        others = ("nq", "hotpotqa", "2wikimultihopqa") if split != "test" else ()
        health = (_health(folder / "library" / "medquad.jsonl.gz", split),) if split != "test" else ()
        every = (squad, *(_other(folder / name, split) for name in others), *health)
    except (KeyError, IndexError) as error:
        raise DataError(
            f"A question set in {folder} lacks {error}; give corpora and questions that belong together."
        ) from error
    return Material(
        tuple(one for some in every for one in some.asked),
        tuple(one for some in every for one in some.hops),
        tuple(one for some in every for one in some.plain),
        tuple(one for some in every for one in some.replies),
        {name: passages for some in every for name, passages in some.around.items()},
    )


def fold(text: str, folds: int) -> int:
    """The fold, from 0, that a title or an id belongs to; the same everywhere and always."""
    return int(sha256(text.encode()).hexdigest(), 16) % folds


def _is_of(title: str, split: Split) -> bool:
    return {0: "test", 1: "dev"}.get(fold(title, 5), "train") == split and (split == "test" or not measured(title))


def measured(text: str) -> bool:
    """Whether an article of SQuAD or a question of NQ is one that the relevance estimator is measured on."""
    return fold(text, 3) == 0


def _squad(folder: Path, split: Split) -> Material:
    corpus = _corpus(folder)
    around: dict[str, list[Passage]] = defaultdict(list)
    for passage in corpus.values():
        if _is_of(passage.title, split):
            around[passage.title].append(passage)
    asked = {
        row["id"]: Asked(row["question"], next(iter(row["answers"]), ""), corpus[row["gold"][0]])
        for name in ("questions_v1.1", "questions_v2.0")
        for row in _rows(folder / f"{name}.jsonl.gz")
        if _is_of(corpus[row["gold"][0]].title, split)
    }
    used = {one.passage.id: one.passage for one in asked.values()}
    return Material(
        tuple(asked.values()),
        (),
        tuple(used.values()),
        around={name: tuple(around[one.title]) for name, one in used.items()},
    )


def _other(folder: Path, split: Split) -> Material:
    corpus = {name: one for name, one in _corpus(folder).items() if not _is_of(one.title, "test")}
    asked, hops, around = [], [], {}
    for row in _rows(folder / "questions.jsonl.gz"):
        gold = tuple(corpus[name] for name in row["gold"] if name in corpus)
        if (fold(row["id"], 20) == 0) != (split == "dev") or not gold or not row["answers"]:
            continue
        if folder.name == "nq" and measured(row["question"]):
            continue
        near = tuple(corpus[name] for name in row.get("candidates", ()) if name in corpus and name not in row["gold"])
        if len(gold) > 1:
            hops.append(Hops(row["question"], row["answers"][0], gold, near))
        elif (answer := next((one for one in row["answers"] if one in gold[0].text), "")) and len(row["gold"]) == 1:
            asked.append(Asked(row["question"], answer, gold[0]))
        around.update({one.id: (*gold, *near) for one in (*gold, *near)})
    used = {one.id: one for some in hops for one in (*some.passages, *some.others)}
    return Material(tuple(asked), tuple(hops), (*used.values(), *(one.passage for one in asked)), around=around)


def _health(path: Path, split: Split) -> Material:
    """Questions on diseases and their answers, a passage each: its beginning. `around` has the disease's others."""
    replies, about = [], defaultdict[str, list[Passage]](list)
    for row in _rows(path):
        if (fold(row["title"], 20) == 0) == (split == "dev"):
            passage = Passage(row["id"], row["title"], " ".join(row["contents"].split()[:_REPLY]))
            replies.append((row["question"], passage))
            about[row["title"]].append(passage)
    return Material((), (), (), tuple(replies), {one.id: tuple(about[one.title]) for _, one in replies})


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    return (row for _, row in records(path))


def _corpus(folder: Path) -> dict[str, Passage]:
    rows = _rows(folder / "corpus.jsonl.gz")
    return {row["id"]: Passage(row["id"], row.get("title") or "", row["contents"]) for row in rows}


# --- making ------------------------------------------------------------------------------------------------------


def make(material: Material, seed: int, kinds: frozenset[str] = frozenset()) -> list[Labelled]:
    """All pairs of the material, in an order and with changes that only the seed decides.

    `kinds` may name some of "answers", "sentences", "hops", "questions" and "quotes"; all are made by default.
    """
    chance = Random(seed)  # noqa: S311 - an experiment, not a secret
    makers = {
        "answers": _answers,
        "sentences": _of_sentences,
        "hops": _of_hops,
        "questions": _questions,
        "quotes": _quotes,
    }
    found = [pair for name, of in makers.items() if not kinds or name in kinds for pair in of(material, chance)]
    found = list(dict.fromkeys(pair for pair in found if pair.first.strip() and pair.second.strip()))
    return chance.sample(found, len(found))


def near_misses(material: Material, seed: int) -> list[dict[str, str]]:
    """Questions of SQuAD 2.0 with the words that a person might take for their answer; those that answer are true.

    Rows as `evaluate support` reads them.
    """
    chance = Random(seed)  # noqa: S311 - an experiment, not a secret
    by_passage = _by_passage(material)
    found = []
    for one in material.asked:
        answer = one.answer or _plausible(one, by_passage[one.passage.id])
        if answer:
            claim, question = _form(one.question, answer, one.passage, chance)
            kind = "statement" if not question else "words to a question" if claim == answer else "statement to one"
            found.append({
                "question": question, "claim": claim, "title": one.passage.title, "evidence": one.passage.text,
                "label": "supported" if one.answer else "not_supported", "kind": kind,
            })  # fmt: skip
    return found


def _by_passage(material: Material) -> dict[str, list[Asked]]:
    found: dict[str, list[Asked]] = defaultdict(list)
    for one in material.asked:
        found[one.passage.id].append(one)
    return found


def _answers(material: Material, chance: Random) -> Iterator[Labelled]:
    by_passage = _by_passage(material)
    for one in material.asked:
        beside = by_passage[one.passage.id]
        if not one.answer:
            wrong = _plausible(one, beside)
            if wrong:
                claim = claimed(*_form(one.question, wrong, one.passage, chance))
                yield _pair(claim, one.passage, wrong, material, chance, FALSE)
            continue
        claim = claimed(*_form(one.question, one.answer, one.passage, chance))
        yield _pair(claim, one.passage, one.answer, material, chance, TRUE)
        yield from _false(one, claim, beside, material, chance)


def _false(one: Asked, claim: str, beside: Sequence[Asked], material: Material, chance: Random) -> Iterator[Labelled]:
    """One or two pairs near a true one: another answer, other evidence, or a changed statement."""
    passage = one.passage
    way = chance.random()
    if way < 0.45 and (wrong := _other_answer(one, beside, chance)):
        other = claimed(*_form(one.question, wrong, passage, chance))
        yield _pair(other, passage, wrong, material, chance, FALSE)
    elif way < 0.8 and (without := _without_answer(one, material, chance)):
        yield Labelled(claim, without, FALSE)
    elif (told := statement(one.question, one.answer, passage.text)) and (
        changed := wronged(told, passage.text, chance)
    ):
        yield _pair(changed, passage, one.answer, material, chance, FALSE)


def _form(question: str, answer: str, passage: Passage, chance: Random) -> tuple[str, str]:
    """The answer as a reply may have it, and the question that it replies to, if any.

    It is the bare words to the question, a statement to it, or a statement alone.
    """
    told, way = statement(question, answer, passage.text), chance.random()
    if told is None or way < 0.4:
        return answer, question
    return told, question if way < 0.7 else ""


def _plausible(one: Asked, beside: Sequence[Asked]) -> str:
    """What might be taken for the answer: that of the most similar question on the passage, which is asked alike."""
    words = set(normalise(one.question).split())
    known = [other for other in beside if other.answer]
    alike = {other: len(words & (own := set(normalise(other.question).split()))) / len(words | own) for other in known}
    best = max(known, key=lambda other: alike[other] + (_asks(other) == _asks(one)), default=None)
    return best.answer if best else ""


def _other_answer(one: Asked, beside: Sequence[Asked], chance: Random) -> str:
    right = normalise(one.answer)
    found = [other.answer for other in beside if other.answer and not _overlap(normalise(other.answer), right)]
    like = [answer for answer in found if answer[0].isdigit() == one.answer[0].isdigit()]
    if one.answer[:1].isupper():
        like += [name for name in names(one.passage.text) if not _overlap(normalise(name), right)]
    return chance.choice(like or found) if found or like else ""


def _overlap(one: str, other: str) -> bool:
    return one in other or other in one


def _asks(one: Asked) -> str:
    found = re.search(r"\b(?:who|whom|when|where|why|how many|how much|how|what year|which year|what|which)\b",
                      one.question.lower())  # fmt: skip
    return found.group() if found else ""


def _without_answer(one: Asked, material: Material, chance: Random) -> str:
    """The passage without the sentences that have the answer, or another on like matters that doesn't have it."""
    others = [p for p in material.around.get(one.passage.id, ()) if normalise(one.answer) not in normalise(p.text)]
    if others and chance.random() < 0.5:
        return chance.choice(others).titled
    kept = [text for text in _texts(one.passage) if normalise(one.answer) not in normalise(text)]
    return f"{one.passage.title}: {' '.join(kept)}" if kept else ""


def _of_sentences(material: Material, chance: Random) -> Iterator[Labelled]:
    by_passage = _by_passage(material)
    for passage in material.plain:
        texts = [one for one in _texts(passage) if _SHORTEST <= len(one.split()) <= _LONGEST]
        if len(texts) < 2:
            continue
        first, second = chance.sample(texts, 2)
        questions = [one.question for one in by_passage.get(passage.id, ())]
        question = chance.choice(questions) if questions and chance.random() < 0.4 else ""
        yield from _of_two(first, second, question, passage, material, chance)


def _of_two(
    first: str, second: str, question: str, passage: Passage, material: Material, chance: Random
) -> Iterator[Labelled]:
    one, two = (lightened(text, passage.title, chance) or text for text in (first, second))
    changed = wronged(one, passage.text, chance)
    if chance.random() < 0.5:
        yield _pair(claimed(one, question), passage, first, material, chance, TRUE)
        yield Labelled(claimed(one, question), _lacking(passage, first), FALSE)
        if changed:
            yield _pair(claimed(changed, question), passage, first, material, chance, FALSE)
        return
    both = _joined(one, two, chance)
    yield Labelled(claimed(both, question), passage.titled, TRUE)
    if changed and chance.random() < 0.5:
        pair = (changed, two) if chance.random() < 0.5 else (two, changed)
        yield Labelled(claimed(_joined(*pair, chance), question), passage.titled, PARTLY)
    else:
        yield Labelled(claimed(both, question), _lacking(passage, chance.choice([first, second])), PARTLY)


def _joined(one: str, two: str, chance: Random) -> str:
    if chance.random() < 0.5:
        return f"{one} {two}"
    start = two if two.split(maxsplit=1)[0] in names(f". {two} {two}") else f"{two[0].lower()}{two[1:]}"
    return f"{one.rstrip('.')}, {chance.choice(['and', 'and', 'while'])} {start}"


def _lacking(passage: Passage, text: str) -> str:
    return f"{passage.title}: {' '.join(one for one in _texts(passage) if one != text)}"


def _of_hops(material: Material, chance: Random) -> Iterator[Labelled]:
    for one in material.hops:
        told = statement(one.question, one.answer, " ".join(p.text for p in one.passages))
        claim = claimed(told if told and chance.random() < 0.5 else one.answer, one.question)
        if told and chance.random() < 0.2:
            claim = told
        yield Labelled(claim, _together(one.passages, chance), TRUE)
        if (reply := one.answer.lower()) in {"yes", "no"}:
            other = "No" if reply == "yes" else "Yes"
            yield Labelled(claimed(other, one.question), _together(one.passages, chance), FALSE)
        gone = chance.choice(one.passages)
        rest = [passage for passage in one.passages if passage != gone]
        filler = chance.sample(one.others, min(1, len(one.others)))
        # what the answer's own words are gone from is not said at all; what only a link is gone from, in part
        said = normalise(one.answer) in normalise(" ".join(passage.titled for passage in rest))
        yield Labelled(claim, _together([*rest, *filler], chance), PARTLY if said else FALSE)
        wrong = [title for passage in (*one.passages, *one.others) if (title := passage.title) not in claim]
        if wrong and one.answer[:1].isupper() and reply not in {"yes", "no"}:
            yield Labelled(claimed(chance.choice(wrong), one.question), _together(one.passages, chance), FALSE)


def _questions(material: Material, chance: Random) -> Iterator[Labelled]:
    """Questions by themselves, each beside a passage that answers and one that doesn't."""
    for one in material.asked:
        question = claimed("", one.question)
        if not one.answer:
            yield Labelled(question, _cut(one.passage, "", chance), FALSE)
            continue
        yield _pair(question, one.passage, one.answer, material, chance, TRUE)
        if without := _without_answer(one, material, chance):
            yield Labelled(question, without, FALSE)
    for asked, passage in chance.sample(material.replies, min(len(material.replies), _REPLIES)):
        question = claimed("", asked)
        yield Labelled(question, passage.titled, TRUE)
        others = [other for other in material.around[passage.id] if other.text != passage.text]
        if others:
            yield Labelled(question, chance.choice(others).titled, FALSE)


def _quotes(material: Material, chance: Random) -> Iterator[Labelled]:
    """Sentences of passages as replies, each beside itself: does it answer what was asked?

    The false ones are those that have most words of the question, without the answer.
    """
    for one in material.asked:
        asked_of = _words(one.question)
        shared = {text: len(_words(text) & asked_of) for text in _texts(one.passage)}
        ranked = sorted(shared, key=shared.__getitem__, reverse=True)
        right = next((text for text in ranked if one.answer and one.answer in text), "")
        if right:
            yield _alone(one.question, right, one.passage, TRUE)
        wrong = next((text for text in ranked if not one.answer or one.answer not in text), "")
        if wrong and (not right or chance.random() < _WRONG):
            yield _alone(one.question, wrong, one.passage, FALSE)
    for asked, passage in chance.sample(material.replies, min(len(material.replies), _REPLIES)):
        yield from (_alone(asked, text, passage, TRUE) for text in _texts(passage)[:1])
        others = [other for other in material.around[passage.id] if other.text != passage.text]
        other = chance.choice(others) if others else passage
        yield from (_alone(asked, text, other, FALSE) for text in _texts(other)[:1] if others)


def _alone(question: str, sentence: str, passage: Passage, label: float) -> Labelled:
    return Labelled(claimed(sentence, question), f"{passage.title}: {sentence}", label)


def _words(text: str) -> set[str]:
    """The words by which texts are told to be alike: four letters and more."""
    return {word for word in normalise(text).split() if len(word) >= _LONG}


def _together(passages: Sequence[Passage], chance: Random) -> str:
    return " ".join(passage.titled for passage in chance.sample(passages, len(passages)))


def _pair(claim: str, passage: Passage, around: str, material: Material, chance: Random, label: float) -> Labelled:
    """A pair with the passage as evidence: whole, cut to the sentences around some words, or with other text."""
    way = chance.random()
    if way < _CUT:
        return Labelled(claim, _cut(passage, around, chance), label)
    others = material.around.get(passage.id, ()) if way < _CUT + _JOINED else ()
    others = tuple(one for one in others if one.id != passage.id)
    if others:
        return Labelled(claim, _together([passage, chance.choice(others)], chance), label)
    return Labelled(claim, passage.titled, label)


def _cut(passage: Passage, around: str, chance: Random) -> str:
    texts = _texts(passage)
    at = next((n for n, text in enumerate(texts) if around in text), chance.randrange(max(len(texts), 1)))
    start, end = max(at - chance.randint(0, 2), 0), at + chance.randint(1, 3)
    return f"{passage.title}: {' '.join(texts[start:end])}"


def _texts(passage: Passage) -> tuple[str, ...]:
    return _split(passage.text)


@cache
def _split(text: str) -> tuple[str, ...]:
    """The sentences of a text, which are asked for again and again and take long to find."""
    return tuple(quote(text, span) for span in sentences(text))
