"""Offers to remember what a message says about its writer. Nothing is stored here, and no language model is asked.

`ptkb.statements` finds what is stated in the usual forms; Sentence-BERT then tells what lasts ("I'm vegetarian") from
what passes ("I'm hungry") by examples (ptkb/examples.toml). What is stated in other forms is learned (`ptkb.told`).
Words tell what is known already, and what contradicts a fact.
docs/results/memory.md has the measurements.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from assistant.protocols import Embedder
from assistant.text.sentences import quote, sentences
from assistant.types import Fact, FactOffer
from ptkb.rank import VectorCache
from ptkb.statements import statements, unmatched
from ptkb.store import MAX_FACT_CHARS
from ptkb.told import THRESHOLD, likelihoods

MAX_OFFERS = 3
# A statement lasts if its similarity to the nearest lasting examples exceeds that to the nearest passing ones by this.
LASTING_MARGIN = 0.0
NEAREST_EXAMPLES = 3
SAME_FACT_SIMILARITY = 0.95

_WORD = re.compile(r"\w+(?:'\w+)?")
# What may be a question put as a statement: "I'm interested in the economy of Ghana".
_WISH = re.compile(
    r"I(?:'[dm])? (?:want|like to|wish|hope|need|plan|interested|looking|trying|going|wonder)", re.IGNORECASE
)
_WHEN = re.compile(r"\b(?:last|this|in|since|(?:an?|one|two|three|\d+)) (?:week|month|year)s?(?: ago)?(?= *\W*$)")
_EMPTY = frozenset(
    "i i'm i've i'd my a an the am is are was be have has own got do does did to of in on at as with for and or we our "
    "years old year really also currently just now very always usually".split()
)
# Where something else begins in a statement: behind these the words before are not named more closely.
_PHRASE_END = re.compile(
    r"[^\w\s'’-]|\b(?:since|from|by|after|before|because|but|when|while|who|which|that|than|about|near|during|until)\b"
)
_OTHER = re.compile(r"(?:.*\bthat )?(?:my|our) (\w+)", re.IGNORECASE)
_NUMBERS = {word: str(n) for n, word in enumerate("zero one two three four five six seven eight nine ten".split())}
_DENIALS = frozenset("not no never n't don't can't isn't aren't doesn't without quit stopped stop gave".split())
_SYNONYMS = {
    **dict.fromkeys(("love", "enjoy", "adore", "prefer"), "like"),
    **dict.fromkeys(("allergy", "allergies"), "allergic"),
    "diabetic": "diabet",
    "asthmatic": "asthma",
}
_AVERSIONS = frozenset("hate dislike loathe detest".split())
# What a person has one of; another value contradicts the one that is known.
_ONLY_ONE = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"^I'm (\d{1,3})(?: years old)?\.?$",
        r"^I live in (?!an? |my |the (?:country|city|suburbs|mountains|north|south|east|west))(.+)$",
        r"^My ((?:name|age|birthday|job|height|weight|budget|salary|income|rent|diet|phone|goal|blood type"
        r"|favou?rite [\w ]+?)(?: for [\w ]+)?) (?:is|are) ",
        r"^I weigh (.+)$",
        r"^I'm (?:a )?(vegan|vegetarian|pescatarian|omnivore)\.?$|^I eat (?:meat|everything|chicken|beef|pork)\b",
        r"^I'm (?:a )?(vegan|vegetarian)\.?$|^I eat fish\b",
        r"^I'm (single|married|divorced|engaged(?! (?:in|with)\b)|widowed)\b",
    )
)


@dataclass(frozen=True, slots=True)
class _Meaning:
    """A statement's telling words, its numbers, and whether it denies."""

    words: frozenset[str]
    numbers: frozenset[str]
    denied: bool


def offers(utterance: str, facts: Sequence[Fact], embedder: Embedder) -> tuple[FactOffer, ...]:
    """At most three statements of the utterance that are worth remembering and not known yet.

    One that contradicts a fact names it in `replaces`; where that fact says more, the rest of it is kept in the text.
    Statements that contradict the same fact are one offer: each alone would keep what the other corrects.
    """
    stated = lasting_statements(utterance, embedder)
    new = unknown_statements(stated, facts, embedder)
    return tuple(dict.fromkeys(_offer(text, new, stated, facts) for text in new))[:MAX_OFFERS]


def lasting_statements(utterance: str, embedder: Embedder) -> tuple[str, ...]:
    """What an utterance states of its writer that lasts: as sentences such as "I'm vegan.", or in its own words."""
    unmatched_sentences = unmatched(utterance)
    probabilities = likelihoods(unmatched_sentences, embedder)
    learned = (
        text for text, probability in zip(unmatched_sentences, probabilities, strict=True) if probability >= THRESHOLD
    )
    return (*_in_usual_forms(utterance, embedder), *learned)


def _in_usual_forms(utterance: str, embedder: Embedder) -> list[str]:
    stated = [text for text in statements(utterance) if len(text) <= MAX_FACT_CHARS]
    return [text for text, lasts in zip(stated, _lasts(stated, embedder), strict=True) if lasts] if stated else []


def unknown_statements(stated: Sequence[str], facts: Sequence[Fact], embedder: Embedder) -> list[str]:
    """Those of the statements that none of the facts says."""
    return [text for text in stated if not _is_known(text, facts, embedder)]


def outdated_facts(facts: Sequence[Fact]) -> dict[str, Fact]:
    """The facts that are on and that a newer one contradicts, by their ids, each with the newest that does.

    Only those are compared that may contradict each other, so that hundreds of facts take milliseconds.
    """
    by_slot: dict[object, list[Fact]] = {}
    for fact in sorted((fact for fact in facts if fact.on), key=lambda fact: fact.changed):
        for slot in {slot for part in _parts(fact.in_english) for slot in _slots(part)}:
            by_slot.setdefault(slot, []).append(fact)
    newest_contradicting: dict[str, Fact] = {}
    for group in by_slot.values():
        for position, old in enumerate(group):
            newer = (new for new in reversed(group[position + 1 :]) if new.changed > old.changed)
            if newer_fact := next((new for new in newer if _speaks_against(new, old)), None):
                newest_contradicting[old.id] = newer_fact
    return newest_contradicting


def _slots(text: str) -> set[object]:
    """What a statement has in common with any that it may contradict."""
    return {_meaning(text).words, *(n for n, pattern in enumerate(_ONLY_ONE) if pattern.match(text))}


def _speaks_against(new: Fact, old: Fact) -> bool:
    """Whether a fact contradicts all that another says; one that says more goes on being used."""
    return all(any(_contradicts(text, part) for text in _parts(new.in_english)) for part in _parts(old.in_english))


def only_states_facts(utterance: str, embedder: Embedder) -> bool:
    """Whether an utterance says nothing but what lasts of its writer ("I'm from Kenya and I'm vegetarian"), no wish.

    Only the usual forms count: what is learned takes a request for a statement now and then, and it is to be answered.
    """
    sentence_texts = [quote(utterance, span) for span in sentences(utterance)]
    stated = [_in_usual_forms(sentence, embedder) for sentence in sentence_texts]
    texts = [text for sentence_statements in stated for text in sentence_statements]
    if "?" in utterance or not texts or any(map(_WISH.match, texts)):
        return False
    stated_words = (_words(" ".join(sentence_statements)) | _EMPTY for sentence_statements in stated)
    return all(_words(sentence) <= words for sentence, words in zip(sentence_texts, stated_words, strict=True))


def without_statements(utterance: str, embedder: Embedder) -> str:
    """An utterance without the sentences that only tell something of its writer; "" if it has none, or no others."""
    sentence_texts = [quote(utterance, span) for span in sentences(utterance)]
    other_sentences = [sentence for sentence in sentence_texts if not only_states_facts(sentence, embedder)]
    return " ".join(other_sentences) if len(other_sentences) < len(sentence_texts) else ""


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower().replace("’", "'")))


def _lasts(texts: Sequence[str], embedder: Embedder) -> list[bool]:
    examples = _examples()
    lasting, passing = examples["lasting"], examples["passing"]
    vectors = _CACHE.encode([*lasting, *passing, *texts], embedder)
    similar = vectors[len(lasting) + len(passing) :] @ vectors[: len(lasting) + len(passing)].T
    return [
        bool(lasts)
        for lasts in _nearest(similar[:, : len(lasting)]) - _nearest(similar[:, len(lasting) :]) > LASTING_MARGIN
    ]


def _nearest(similarities: NDArray[np.float32]) -> NDArray[np.float32]:
    means: NDArray[np.float32] = np.sort(similarities, axis=1)[:, -NEAREST_EXAMPLES:].mean(axis=1)
    return means


def _offer(text: str, new: Sequence[str], stated: Sequence[str], facts: Sequence[Fact]) -> FactOffer:
    """The offer of a statement; one that contradicts a fact says what else is new of it, and what stays of it."""
    old = _contradicted(text, facts)
    if not old:
        return FactOffer(text)
    new_statements = [statement for statement in new if _contradicted(statement, facts) == old]
    remaining_parts = [
        part for part in _parts(old.text) if not any(_contradicts(statement, part) for statement in stated)
    ]
    return FactOffer(_joined([*new_statements, *remaining_parts]), old.id)


def _contradicted(text: str, facts: Sequence[Fact]) -> Fact | None:
    """The first fact that a statement contradicts."""
    return next((fact for fact in facts if any(_contradicts(text, part) for part in _parts(fact.text))), None)


def _joined(texts: Sequence[str]) -> str:
    """As many of the sentences as one fact can hold."""
    joined = ""
    for text in texts:
        longer = f"{joined} {text}".lstrip()
        joined = longer if len(longer) <= MAX_FACT_CHARS else joined
    return joined


def _is_known(text: str, facts: Sequence[Fact], embedder: Embedder) -> bool:
    """Whether a fact says it already."""
    is_said = any(_says(part, text) for fact in facts for part in _parts(fact.in_english))
    return is_said or _is_close(text, [fact.in_english for fact in facts], embedder)


@lru_cache(maxsize=4096)
def _parts(fact: str) -> tuple[str, ...]:
    """What a fact says, one statement each; the fact itself where it is not put as a statement of the first person."""
    return tuple(statements(fact)) or (fact,)


def entails(known_text: str, text: str) -> bool:
    """Whether a text that is known has all telling words and numbers of another, and denies no more or less.

    What it says of somebody else ("My father has diabetes") says nothing of its writer.
    """
    old, new = _meaning(known_text), _meaning(text)
    telling = new.words | new.numbers
    if not telling or not telling <= old.words | old.numbers or new.denied != old.denied:
        return False
    return _other_person(known_text) in {"", _other_person(text)}


def _says(known_text: str, text: str) -> bool:
    """Whether a known fact says all of a statement: as `entails`, and each of its words stands by itself there, too.

    Whoever is allergic to coconut milk may drink milk.
    """
    if not entails(known_text, text):
        return False
    telling = _meaning(text).words | _meaning(text).numbers
    phrases = ([_telling_word(word) for word in _WORD.findall(part)] for part in _PHRASE_END.split(known_text.lower()))
    neighbours = ({*pair} for words in phrases for pair in pairwise(words) if all(pair))
    return all(pair <= telling or not pair & telling for pair in neighbours)


def _other_person(text: str) -> str:
    """Whom a statement is about, if it begins with them ("My father ..."); "" for its writer."""
    match = _OTHER.match(text)
    return match[1].lower() if match else ""


def _is_close(text: str, known_texts: Sequence[str], embedder: Embedder) -> bool:
    new = _meaning(text)
    alike = [
        known_text
        for known_text in known_texts
        if (_meaning(known_text).numbers, _meaning(known_text).denied) == (new.numbers, new.denied)
    ]
    if not alike:
        return False
    vectors = _CACHE.encode([text, *alike], embedder)
    return bool((vectors[1:] @ vectors[0]).max() >= SAME_FACT_SIMILARITY)


def _contradicts(text: str, known_text: str) -> bool:
    if _says(known_text, text):
        return False
    old, new = _meaning(known_text), _meaning(text)
    if new.denied != old.denied:
        return bool(new.words) and new.words == old.words and new.numbers == old.numbers
    if new.words == old.words and new.words and new.numbers and old.numbers:
        return new.numbers != old.numbers
    return not new.denied and any(_same_slot(pattern, text, known_text) for pattern in _ONLY_ONE)


def _same_slot(pattern: re.Pattern[str], text: str, known_text: str) -> bool:
    new, old = pattern.match(text), pattern.match(known_text)
    if not new or not old:
        return False
    values = new[1] or "", old[1] or ""
    if not any(values):  # two things that a person eats
        return False
    return values[0].lower() == values[1].lower() if pattern.pattern.startswith("^My") else True


@cache
def _meaning(text: str) -> _Meaning:
    words, numbers, denied = set[str](), set[str](), False
    for word in _WORD.findall(_WHEN.sub("", text.lower()).replace("can't stand", "hate").replace("gave up", "gave")):
        if word in _DENIALS or word in _AVERSIONS:
            denied = not denied
        if telling_word := _telling_word(word):
            (numbers if telling_word.isdigit() else words).add(telling_word)
    return _Meaning(frozenset(words), frozenset(numbers), denied)


def _telling_word(word: str) -> str:
    """A word as it is compared with others, "" for one that tells nothing by itself."""
    if word in _AVERSIONS:
        return "like"
    if word.isdigit() or word in _NUMBERS:
        return _NUMBERS.get(word, word)
    return "" if word in _EMPTY or word in _DENIALS else _SYNONYMS.get(word, _stem(word))


def _stem(word: str) -> str:
    """`word` without the endings of plurals, verbs and doers: smoke, smoking and smokers are one."""
    stem = re.sub(r"(?:ing|ers?|ed|es|s|e)$", "", word) if len(word) > 3 else word
    return stem[:-1] if len(stem) > 3 and stem[-1] == stem[-2] and stem != word else stem


@cache
def _examples() -> dict[str, list[str]]:
    table: dict[str, list[str]] = tomllib.loads((Path(__file__).parent / "examples.toml").read_text(encoding="utf-8"))
    return table


_CACHE = VectorCache(5_000)
