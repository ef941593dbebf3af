"""The recipe: pairs of a claim and its evidence, made from question sets whose answers and passages are known.

After FactCG (Lei et al. 2025): claims are statements made of questions and their answers, and sentences of passages.
What makes one false is never seen in the claim alone, if that can be helped: most claims are there twice, once with a
passage that backs them and once with one that doesn't, because it is another, or lacks the very sentence.

    true    a question with its answer; the two as a statement; a sentence of the passage, rephrased; two of those
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
from assistant.experiment.datasets import fingerprint, records
from assistant.judges.support.trained import claimed
from assistant.text.sentences import normalise, quote, sentences
from assistant.training.support.edits import falsified, names, rephrased
from assistant.training.support.statements import statement
from assistant.training.trainer import LabelledPair
from assistant.types import Passage

Split = Literal["train", "dev", "test"]
TRUE, PARTLY, FALSE = 1.0, 0.3, 0.0
# The sets, by their places in the folder of the data.
_SQUAD_QUESTIONS, _SETS = ("questions_v1.1", "questions_v2.0"), ("nq", "hotpotqa", "2wikimultihopqa")
_MEDQUAD = Path("library", "medquad.jsonl.gz")
# Words at the beginning of a reply that make its passage.
_REPLY_WORDS = 80
# Questions on diseases that one seed takes, so that they don't outweigh the other sets.
_MAX_REPLIES = 2000
# The share of evidence that is cut down to a few sentences around the one meant, and that is joined with other text.
_CUT_SHARE, _JOINED_SHARE = 0.5, 0.15
# How often a sentence that doesn't answer stands beside one that does, and letters of a word that counts.
_WRONG_SHARE, _MIN_LETTERS = 0.8, 4
# Sentences that claims are made of, in words.
_MIN_WORDS, _MAX_WORDS = 6, 40


@dataclass(frozen=True, slots=True)
class PassageQuestion:
    """A question on a passage, and the words of it that answer; no words where the passage doesn't tell."""

    question: str
    answer: str
    passage: Passage


@dataclass(frozen=True, slots=True)
class MultiHopQuestion:
    """A question that needs several passages together; `distractors` are on like matters and don't help."""

    question: str
    answer: str
    passages: tuple[Passage, ...]
    distractors: tuple[Passage, ...]


@dataclass(frozen=True, slots=True)
class Material:
    """What pairs are made of. `related_passages` are the passages of the same work or question, by a passage's id.

    `replies` are questions with passages that answer them as a whole.
    """

    questions: tuple[PassageQuestion, ...]
    multi_hop_questions: tuple[MultiHopQuestion, ...]
    passages: tuple[Passage, ...]
    replies: tuple[tuple[str, Passage], ...] = ()
    related_passages: Mapping[str, tuple[Passage, ...]] = field(default_factory=dict)


# --- reading -----------------------------------------------------------------------------------------------------


def read_material(folder: Path, split: Split) -> Material:
    """The questions of one split of squad/, nq/, hotpotqa/, 2wikimultihopqa/ and library/ in a folder.

    SQuAD is split by article: a fifth of them for "test", a fifth for "dev". Of the other sets a twentieth of the
    questions is "dev", and none "test"; passages with the title of a test article are left out everywhere. So are, of
    SQuAD and NQ, the third of articles and of questions that the relevance estimator is measured on.

    Raises:
        DataError: a file is missing or broken, or lacks what such a set has.
    """
    try:
        squad = _read_squad(folder / "squad", split)
        set_names = _SETS if split != "test" else ()
        medquad = (_read_medquad(folder / _MEDQUAD, split),) if split != "test" else ()
        materials = (squad, *(_read_set(folder / name, split) for name in set_names), *medquad)
    except (KeyError, IndexError) as error:
        raise DataError(
            f"A question set in {folder} lacks {error}; give corpora and questions that belong together."
        ) from error
    return Material(
        tuple(example for material in materials for example in material.questions),
        tuple(example for material in materials for example in material.multi_hop_questions),
        tuple(passage for material in materials for passage in material.passages),
        tuple(reply for material in materials for reply in material.replies),
        {passage_id: passages for material in materials for passage_id, passages in material.related_passages.items()},
    )


def fingerprints(folder: Path) -> list[str]:
    """What tells the sets in a folder from others: the hash of each of their files.

    Raises:
        DataError: one can't be read.
    """
    files = [folder / name / "corpus.jsonl.gz" for name in ("squad", *_SETS)]
    files += [folder / "squad" / f"{name}.jsonl.gz" for name in _SQUAD_QUESTIONS]
    files += [folder / name / "questions.jsonl.gz" for name in _SETS]
    return [fingerprint(path) for path in (*files, folder / _MEDQUAD)]


def fold(text: str, folds: int) -> int:
    """The fold, from 0, that a title or an id belongs to; the same everywhere and always."""
    return int(sha256(text.encode()).hexdigest(), 16) % folds


def _is_in_split(title: str, split: Split) -> bool:
    return {0: "test", 1: "dev"}.get(fold(title, 5), "train") == split and (
        split == "test" or not is_relevance_test_item(title)
    )


def is_relevance_test_item(text: str) -> bool:
    """Whether an article of SQuAD or a question of NQ is one that the relevance estimator is measured on."""
    return fold(text, 3) == 0


def _read_squad(folder: Path, split: Split) -> Material:
    corpus = _read_corpus(folder)
    passages_by_title: dict[str, list[Passage]] = defaultdict(list)
    for passage in corpus.values():
        if _is_in_split(passage.title, split):
            passages_by_title[passage.title].append(passage)
    examples = {
        row["id"]: PassageQuestion(row["question"], next(iter(row["answers"]), ""), corpus[row["gold"][0]])
        for name in _SQUAD_QUESTIONS
        for row in _rows(folder / f"{name}.jsonl.gz")
        if _is_in_split(corpus[row["gold"][0]].title, split)
    }
    used_passages = {example.passage.id: example.passage for example in examples.values()}
    return Material(
        tuple(examples.values()),
        (),
        tuple(used_passages.values()),
        related_passages={
            passage_id: tuple(passages_by_title[passage.title]) for passage_id, passage in used_passages.items()
        },
    )


def _read_set(folder: Path, split: Split) -> Material:
    corpus = {
        passage_id: passage
        for passage_id, passage in _read_corpus(folder).items()
        if not _is_in_split(passage.title, "test")
    }
    examples, hops, related_passages = [], [], {}
    for row in _rows(folder / "questions.jsonl.gz"):
        gold = tuple(corpus[passage_id] for passage_id in row["gold"] if passage_id in corpus)
        if (fold(row["id"], 20) == 0) != (split == "dev") or not gold or not row["answers"]:
            continue
        if folder.name == "nq" and is_relevance_test_item(row["question"]):
            continue
        distractors = tuple(
            corpus[passage_id]
            for passage_id in row.get("candidates", ())
            if passage_id in corpus and passage_id not in row["gold"]
        )
        if len(gold) > 1:
            hops.append(MultiHopQuestion(row["question"], row["answers"][0], gold, distractors))
        elif (answer := next((text for text in row["answers"] if text in gold[0].text), "")) and len(row["gold"]) == 1:
            examples.append(PassageQuestion(row["question"], answer, gold[0]))
        related_passages.update({passage.id: (*gold, *distractors) for passage in (*gold, *distractors)})
    hop_passages = {passage.id: passage for hop in hops for passage in (*hop.passages, *hop.distractors)}
    return Material(
        tuple(examples),
        tuple(hops),
        (*hop_passages.values(), *(example.passage for example in examples)),
        related_passages=related_passages,
    )


def _read_medquad(path: Path, split: Split) -> Material:
    """Questions on diseases and their answers, a passage each: its beginning. Those of one disease are related."""
    replies, passages_by_title = [], defaultdict[str, list[Passage]](list)
    for row in _rows(path):
        if (fold(row["title"], 20) == 0) == (split == "dev"):
            passage = Passage(row["id"], row["title"], " ".join(row["contents"].split()[:_REPLY_WORDS]))
            replies.append((row["question"], passage))
            passages_by_title[row["title"]].append(passage)
    return Material(
        (), (), (), tuple(replies), {passage.id: tuple(passages_by_title[passage.title]) for _, passage in replies}
    )


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    return (row for _, row in records(path))


def _read_corpus(folder: Path) -> dict[str, Passage]:
    rows = _rows(folder / "corpus.jsonl.gz")
    return {row["id"]: Passage(row["id"], row.get("title") or "", row["contents"]) for row in rows}


# --- making ------------------------------------------------------------------------------------------------------


def make_pairs(material: Material, seed: int, kinds: frozenset[str] = frozenset()) -> list[LabelledPair]:
    """All pairs of the material, in an order and with changes that only the seed decides.

    `kinds` may name some of "answers", "sentences", "hops", "questions" and "quotes"; all are made by default.
    """
    chance = Random(seed)  # noqa: S311 - an experiment, not a secret
    makers = {
        "answers": _answer_pairs,
        "sentences": _sentence_pairs,
        "hops": _hop_pairs,
        "questions": _question_pairs,
        "quotes": _quote_pairs,
    }
    pairs = [pair for name, maker in makers.items() if not kinds or name in kinds for pair in maker(material, chance)]
    pairs = list(dict.fromkeys(pair for pair in pairs if pair.first.strip() and pair.second.strip()))
    return chance.sample(pairs, len(pairs))


def near_misses(material: Material, seed: int) -> list[dict[str, str]]:
    """Questions of SQuAD 2.0 with the words that a person might take for their answer; those that answer are true.

    Rows as `evaluate support` reads them.
    """
    chance = Random(seed)  # noqa: S311 - an experiment, not a secret
    by_passage = _by_passage(material)
    rows = []
    for example in material.questions:
        answer = example.answer or _plausible_answer(example, by_passage[example.passage.id])
        if answer:
            claim, question = _reply_form(example.question, answer, example.passage, chance)
            kind = "statement" if not question else "words to a question" if claim == answer else "statement to one"
            rows.append({
                "question": question, "claim": claim, "title": example.passage.title, "evidence": example.passage.text,
                "label": "supported" if example.answer else "not_supported", "kind": kind,
            })  # fmt: skip
    return rows


def _by_passage(material: Material) -> dict[str, list[PassageQuestion]]:
    examples: dict[str, list[PassageQuestion]] = defaultdict(list)
    for example in material.questions:
        examples[example.passage.id].append(example)
    return examples


def _answer_pairs(material: Material, chance: Random) -> Iterator[LabelledPair]:
    by_passage = _by_passage(material)
    for example in material.questions:
        siblings = by_passage[example.passage.id]
        if not example.answer:
            wrong_answer = _plausible_answer(example, siblings)
            if wrong_answer:
                claim = claimed(*_reply_form(example.question, wrong_answer, example.passage, chance))
                yield _pair(claim, example.passage, wrong_answer, material, chance, FALSE)
            continue
        claim = claimed(*_reply_form(example.question, example.answer, example.passage, chance))
        yield _pair(claim, example.passage, example.answer, material, chance, TRUE)
        yield from _false_pairs(example, claim, siblings, material, chance)


def _false_pairs(
    example: PassageQuestion, claim: str, siblings: Sequence[PassageQuestion], material: Material, chance: Random
) -> Iterator[LabelledPair]:
    """One or two pairs near a true one: another answer, other evidence, or a changed statement."""
    passage = example.passage
    draw = chance.random()
    if draw < 0.45 and (wrong_answer := _other_answer(example, siblings, chance)):
        wrong_claim = claimed(*_reply_form(example.question, wrong_answer, passage, chance))
        yield _pair(wrong_claim, passage, wrong_answer, material, chance, FALSE)
    elif draw < 0.8 and (evidence := _evidence_without_answer(example, material, chance)):
        yield LabelledPair(claim, evidence, FALSE)
    elif (true_statement := statement(example.question, example.answer, passage.text)) and (
        false_statement := falsified(true_statement, passage.text, chance)
    ):
        yield _pair(false_statement, passage, example.answer, material, chance, FALSE)


def _reply_form(question: str, answer: str, passage: Passage, chance: Random) -> tuple[str, str]:
    """The answer as a reply may have it, and the question that it replies to, if any.

    It is the bare words to the question, a statement to it, or a statement alone.
    """
    statement_text, draw = statement(question, answer, passage.text), chance.random()
    if statement_text is None or draw < 0.4:
        return answer, question
    return statement_text, question if draw < 0.7 else ""


def _plausible_answer(example: PassageQuestion, siblings: Sequence[PassageQuestion]) -> str:
    """What might be taken for the answer: that of the most similar question on the passage, which is asked alike."""
    question_words = set(normalise(example.question).split())
    answered_siblings = [sibling for sibling in siblings if sibling.answer]
    similarities = {
        sibling: len(question_words & (sibling_words := set(normalise(sibling.question).split())))
        / len(question_words | sibling_words)
        for sibling in answered_siblings
    }
    best = max(
        answered_siblings,
        key=lambda sibling: similarities[sibling] + (_question_word(sibling) == _question_word(example)),
        default=None,
    )
    return best.answer if best else ""


def _other_answer(example: PassageQuestion, siblings: Sequence[PassageQuestion], chance: Random) -> str:
    right_answer = normalise(example.answer)
    wrong_answers = [
        sibling.answer
        for sibling in siblings
        if sibling.answer and not _overlap(normalise(sibling.answer), right_answer)
    ]
    alike_answers = [answer for answer in wrong_answers if answer[0].isdigit() == example.answer[0].isdigit()]
    if example.answer[:1].isupper():
        alike_answers += [name for name in names(example.passage.text) if not _overlap(normalise(name), right_answer)]
    return chance.choice(alike_answers or wrong_answers) if wrong_answers or alike_answers else ""


def _overlap(first: str, second: str) -> bool:
    return first in second or second in first


def _question_word(example: PassageQuestion) -> str:
    match = re.search(r"\b(?:who|whom|when|where|why|how many|how much|how|what year|which year|what|which)\b",
                      example.question.lower())  # fmt: skip
    return match.group() if match else ""


def _evidence_without_answer(example: PassageQuestion, material: Material, chance: Random) -> str:
    """The passage without the sentences that have the answer, or another on like matters that doesn't have it."""
    other_passages = [
        passage
        for passage in material.related_passages.get(example.passage.id, ())
        if normalise(example.answer) not in normalise(passage.text)
    ]
    if other_passages and chance.random() < 0.5:
        return chance.choice(other_passages).titled
    remaining_sentences = [
        sentence for sentence in _sentences_of(example.passage) if normalise(example.answer) not in normalise(sentence)
    ]
    return f"{example.passage.title}: {' '.join(remaining_sentences)}" if remaining_sentences else ""


def _sentence_pairs(material: Material, chance: Random) -> Iterator[LabelledPair]:
    by_passage = _by_passage(material)
    for passage in material.passages:
        texts = [text for text in _sentences_of(passage) if _MIN_WORDS <= len(text.split()) <= _MAX_WORDS]
        if len(texts) < 2:
            continue
        first, second = chance.sample(texts, 2)
        questions = [example.question for example in by_passage.get(passage.id, ())]
        question = chance.choice(questions) if questions and chance.random() < 0.4 else ""
        yield from _two_sentence_pairs(first, second, question, passage, material, chance)


def _two_sentence_pairs(
    first: str, second: str, question: str, passage: Passage, material: Material, chance: Random
) -> Iterator[LabelledPair]:
    first_claim, second_claim = (rephrased(text, passage.title, chance) or text for text in (first, second))
    false_claim = falsified(first_claim, passage.text, chance)
    if chance.random() < 0.5:
        yield _pair(claimed(first_claim, question), passage, first, material, chance, TRUE)
        yield LabelledPair(claimed(first_claim, question), _evidence_without(passage, first), FALSE)
        if false_claim:
            yield _pair(claimed(false_claim, question), passage, first, material, chance, FALSE)
        return
    joint_claim = _joined(first_claim, second_claim, chance)
    yield LabelledPair(claimed(joint_claim, question), passage.titled, TRUE)
    if false_claim and chance.random() < 0.5:
        claims = (false_claim, second_claim) if chance.random() < 0.5 else (second_claim, false_claim)
        yield LabelledPair(claimed(_joined(*claims, chance), question), passage.titled, PARTLY)
    else:
        yield LabelledPair(
            claimed(joint_claim, question), _evidence_without(passage, chance.choice([first, second])), PARTLY
        )


def _joined(first: str, second: str, chance: Random) -> str:
    if chance.random() < 0.5:
        return f"{first} {second}"
    continuation = (
        second if second.split(maxsplit=1)[0] in names(f". {second} {second}") else f"{second[0].lower()}{second[1:]}"
    )
    return f"{first.rstrip('.')}, {chance.choice(['and', 'and', 'while'])} {continuation}"


def _evidence_without(passage: Passage, text: str) -> str:
    return f"{passage.title}: {' '.join(sentence for sentence in _sentences_of(passage) if sentence != text)}"


def _hop_pairs(material: Material, chance: Random) -> Iterator[LabelledPair]:
    for example in material.multi_hop_questions:
        statement_text = statement(
            example.question, example.answer, " ".join(passage.text for passage in example.passages)
        )
        claim = claimed(
            statement_text if statement_text and chance.random() < 0.5 else example.answer, example.question
        )
        if statement_text and chance.random() < 0.2:
            claim = statement_text
        yield LabelledPair(claim, _shuffled_text(example.passages, chance), TRUE)
        if (reply := example.answer.lower()) in {"yes", "no"}:
            wrong_reply = "No" if reply == "yes" else "Yes"
            yield LabelledPair(claimed(wrong_reply, example.question), _shuffled_text(example.passages, chance), FALSE)
        removed_passage = chance.choice(example.passages)
        remaining_passages = [passage for passage in example.passages if passage != removed_passage]
        fillers = chance.sample(example.distractors, min(1, len(example.distractors)))
        # what the answer's own words are gone from is not said at all; what only a link is gone from, in part
        has_answer = normalise(example.answer) in normalise(" ".join(passage.titled for passage in remaining_passages))
        yield LabelledPair(
            claim, _shuffled_text([*remaining_passages, *fillers], chance), PARTLY if has_answer else FALSE
        )
        wrong_titles = [
            title for passage in (*example.passages, *example.distractors) if (title := passage.title) not in claim
        ]
        if wrong_titles and example.answer[:1].isupper() and reply not in {"yes", "no"}:
            yield LabelledPair(
                claimed(chance.choice(wrong_titles), example.question), _shuffled_text(example.passages, chance), FALSE
            )


def _question_pairs(material: Material, chance: Random) -> Iterator[LabelledPair]:
    """Questions by themselves, each beside a passage that answers and one that doesn't."""
    for example in material.questions:
        claim = claimed("", example.question)
        if not example.answer:
            yield LabelledPair(claim, _excerpt(example.passage, "", chance), FALSE)
            continue
        yield _pair(claim, example.passage, example.answer, material, chance, TRUE)
        if evidence := _evidence_without_answer(example, material, chance):
            yield LabelledPair(claim, evidence, FALSE)
    for question, passage in chance.sample(material.replies, min(len(material.replies), _MAX_REPLIES)):
        claim = claimed("", question)
        yield LabelledPair(claim, passage.titled, TRUE)
        other_passages = [other for other in material.related_passages[passage.id] if other.text != passage.text]
        if other_passages:
            yield LabelledPair(claim, chance.choice(other_passages).titled, FALSE)


def _quote_pairs(material: Material, chance: Random) -> Iterator[LabelledPair]:
    """Sentences of passages as replies, each beside itself: does it answer what was asked?

    The false ones are those that have most words of the question, without the answer.
    """
    for example in material.questions:
        question_words = _content_words(example.question)
        shared_counts = {text: len(_content_words(text) & question_words) for text in _sentences_of(example.passage)}
        ranked = sorted(shared_counts, key=shared_counts.__getitem__, reverse=True)
        right_sentence = next((text for text in ranked if example.answer and example.answer in text), "")
        if right_sentence:
            yield _quote_pair(example.question, right_sentence, example.passage, TRUE)
        wrong_sentence = next((text for text in ranked if not example.answer or example.answer not in text), "")
        if wrong_sentence and (not right_sentence or chance.random() < _WRONG_SHARE):
            yield _quote_pair(example.question, wrong_sentence, example.passage, FALSE)
    for question, passage in chance.sample(material.replies, min(len(material.replies), _MAX_REPLIES)):
        yield from (_quote_pair(question, text, passage, TRUE) for text in _sentences_of(passage)[:1])
        other_passages = [other for other in material.related_passages[passage.id] if other.text != passage.text]
        other_passage = chance.choice(other_passages) if other_passages else passage
        yield from (
            _quote_pair(question, text, other_passage, FALSE)
            for text in _sentences_of(other_passage)[:1]
            if other_passages
        )


def _quote_pair(question: str, sentence: str, passage: Passage, label: float) -> LabelledPair:
    return LabelledPair(claimed(sentence, question), f"{passage.title}: {sentence}", label)


def _content_words(text: str) -> set[str]:
    """The words by which texts are compared: those of four letters and more."""
    return {word for word in normalise(text).split() if len(word) >= _MIN_LETTERS}


def _shuffled_text(passages: Sequence[Passage], chance: Random) -> str:
    return " ".join(passage.titled for passage in chance.sample(passages, len(passages)))


def _pair(claim: str, passage: Passage, focus: str, material: Material, chance: Random, label: float) -> LabelledPair:
    """A pair with the passage as evidence: whole, cut to the sentences around some words, or with other text."""
    draw = chance.random()
    if draw < _CUT_SHARE:
        return LabelledPair(claim, _excerpt(passage, focus, chance), label)
    other_passages = material.related_passages.get(passage.id, ()) if draw < _CUT_SHARE + _JOINED_SHARE else ()
    other_passages = tuple(other for other in other_passages if other.id != passage.id)
    if other_passages:
        return LabelledPair(claim, _shuffled_text([passage, chance.choice(other_passages)], chance), label)
    return LabelledPair(claim, passage.titled, label)


def _excerpt(passage: Passage, focus: str, chance: Random) -> str:
    texts = _sentences_of(passage)
    position = next((n for n, text in enumerate(texts) if focus in text), chance.randrange(max(len(texts), 1)))
    start, end = max(position - chance.randint(0, 2), 0), position + chance.randint(1, 3)
    return f"{passage.title}: {' '.join(texts[start:end])}"


def _sentences_of(passage: Passage) -> tuple[str, ...]:
    return _split_sentences(passage.text)


@cache
def _split_sentences(text: str) -> tuple[str, ...]:
    """The sentences of a text, cached: they are asked for again and again and take long to find."""
    return tuple(quote(text, span) for span in sentences(text))
