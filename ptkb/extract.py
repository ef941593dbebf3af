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
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from assistant.protocols import Embedder
from assistant.text.sentences import quote, sentences
from assistant.types import Fact, FactOffer
from ptkb.rank import VectorCache
from ptkb.statements import statements, unmatched
from ptkb.store import LONGEST
from ptkb.told import THRESHOLD, likelihoods

MOST = 3
# A statement lasts if its similarity to the nearest lasting examples exceeds that to the nearest passing ones by this.
MARGIN = 0.0
NEAREST = 3
SAME = 0.95

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
    stated = lasting(utterance, embedder)
    new = unknown(stated, facts, embedder)
    return tuple(dict.fromkeys(_offer(text, new, stated, facts) for text in new))[:MOST]


def lasting(utterance: str, embedder: Embedder) -> tuple[str, ...]:
    """What an utterance states of its writer that lasts: as sentences such as "I'm vegan.", or in its own words."""
    others = unmatched(utterance)
    likely = likelihoods(others, embedder)
    learned = (text for text, likelihood in zip(others, likely, strict=True) if likelihood >= THRESHOLD)
    return (*_in_usual_forms(utterance, embedder), *learned)


def _in_usual_forms(utterance: str, embedder: Embedder) -> list[str]:
    stated = [text for text in statements(utterance) if len(text) <= LONGEST]
    return [text for text, lasts in zip(stated, _lasts(stated, embedder), strict=True) if lasts] if stated else []


def unknown(stated: Sequence[str], facts: Sequence[Fact], embedder: Embedder) -> list[str]:
    """Those of the statements that none of the facts says."""
    return [text for text in stated if not _is_known(text, facts, embedder)]


def outdated(facts: Sequence[Fact]) -> dict[str, Fact]:
    """The facts that are on and that a newer one contradicts, by their ids, each with the newest that does.

    Only those are compared that may contradict each other, so that hundreds of facts take milliseconds.
    """
    alike: dict[object, list[Fact]] = {}
    for fact in sorted((one for one in facts if one.on), key=lambda one: one.changed):
        for slot in {slot for part in _parts(fact.in_english) for slot in _slots(part)}:
            alike.setdefault(slot, []).append(fact)
    found: dict[str, Fact] = {}
    for group in alike.values():
        for place, old in enumerate(group):
            newer = (new for new in reversed(group[place + 1 :]) if new.changed > old.changed)
            if by := next((new for new in newer if _speaks_against(new, old)), None):
                found[old.id] = by
    return found


def _slots(text: str) -> set[object]:
    """What a statement has in common with any that it may contradict."""
    return {_meaning(text).words, *(n for n, pattern in enumerate(_ONLY_ONE) if pattern.match(text))}


def _speaks_against(new: Fact, old: Fact) -> bool:
    """Whether a fact contradicts all that another says; one that says more goes on being used."""
    return all(any(_contradicts(text, part) for text in _parts(new.in_english)) for part in _parts(old.in_english))


def only_tells(utterance: str, embedder: Embedder) -> bool:
    """Whether an utterance says nothing but what lasts of its writer ("I'm from Kenya and I'm vegetarian"), no wish.

    Only the usual forms count: what is learned takes a request for a statement now and then, and it is to be answered.
    """
    said = [quote(utterance, span) for span in sentences(utterance)]
    stated = [_in_usual_forms(sentence, embedder) for sentence in said]
    texts = [text for of_one in stated for text in of_one]
    if "?" in utterance or not texts or any(map(_WISH.match, texts)):
        return False
    told = (_words(" ".join(of_one)) | _EMPTY for of_one in stated)
    return all(_words(sentence) <= words for sentence, words in zip(said, told, strict=True))


def without_statements(utterance: str, embedder: Embedder) -> str:
    """An utterance without the sentences that only tell something of its writer; "" if it has none, or no others."""
    said = [quote(utterance, span) for span in sentences(utterance)]
    rest = [sentence for sentence in said if not only_tells(sentence, embedder)]
    return " ".join(rest) if len(rest) < len(said) else ""


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower().replace("’", "'")))


def _lasts(texts: Sequence[str], embedder: Embedder) -> list[bool]:
    examples = _examples()
    lasting, passing = examples["lasting"], examples["passing"]
    vectors = _CACHE.encode([*lasting, *passing, *texts], embedder)
    similar = vectors[len(lasting) + len(passing) :] @ vectors[: len(lasting) + len(passing)].T
    return [bool(one) for one in _nearest(similar[:, : len(lasting)]) - _nearest(similar[:, len(lasting) :]) > MARGIN]


def _nearest(similarities: NDArray[np.float32]) -> NDArray[np.float32]:
    best: NDArray[np.float32] = np.sort(similarities, axis=1)[:, -NEAREST:].mean(axis=1)
    return best


def _offer(text: str, new: Sequence[str], stated: Sequence[str], facts: Sequence[Fact]) -> FactOffer:
    """The offer of a statement; one that contradicts a fact says what else is new of it, and what stays of it."""
    old = _contradicted(text, facts)
    if not old:
        return FactOffer(text)
    told = [one for one in new if _contradicted(one, facts) == old]
    rest = [part for part in _parts(old.text) if not any(_contradicts(one, part) for one in stated)]
    return FactOffer(_joined([*told, *rest]), old.id)


def _contradicted(text: str, facts: Sequence[Fact]) -> Fact | None:
    """The first fact that a statement contradicts."""
    return next((fact for fact in facts if any(_contradicts(text, part) for part in _parts(fact.text))), None)


def _joined(sentences: Sequence[str]) -> str:
    """As many of the sentences as one fact can hold."""
    held = ""
    for sentence in sentences:
        longer = f"{held} {sentence}".lstrip()
        held = longer if len(longer) <= LONGEST else held
    return held


def _is_known(text: str, facts: Sequence[Fact], embedder: Embedder) -> bool:
    """Whether a fact says it already."""
    said = any(says(part, text) for fact in facts for part in _parts(fact.in_english))
    return said or _is_close(text, [fact.in_english for fact in facts], embedder)


@lru_cache(maxsize=4096)
def _parts(fact: str) -> tuple[str, ...]:
    """What a fact says, one statement each; the fact itself where it is not put as a statement of the first person."""
    return tuple(statements(fact)) or (fact,)


def says(known: str, text: str) -> bool:
    """Whether a text that is known has all telling words and numbers of another, and denies no more or less."""
    old, new = _meaning(known), _meaning(text)
    told = new.words | new.numbers
    return bool(told) and told <= old.words | old.numbers and new.denied == old.denied


def _is_close(text: str, known: Sequence[str], embedder: Embedder) -> bool:
    new = _meaning(text)
    alike = [one for one in known if (_meaning(one).numbers, _meaning(one).denied) == (new.numbers, new.denied)]
    if not alike:
        return False
    vectors = _CACHE.encode([text, *alike], embedder)
    return bool((vectors[1:] @ vectors[0]).max() >= SAME)


def _contradicts(text: str, known: str) -> bool:
    if says(known, text):
        return False
    old, new = _meaning(known), _meaning(text)
    if new.denied != old.denied:
        return bool(new.words) and new.words == old.words and new.numbers == old.numbers
    if new.words == old.words and new.words and new.numbers and old.numbers:
        return new.numbers != old.numbers
    return not new.denied and any(_same_slot(pattern, text, known) for pattern in _ONLY_ONE)


def _same_slot(pattern: re.Pattern[str], text: str, known: str) -> bool:
    new, old = pattern.match(text), pattern.match(known)
    if not new or not old:
        return False
    named = new[1] or "", old[1] or ""
    if not any(named):  # two things that a person eats
        return False
    return named[0].lower() == named[1].lower() if pattern.pattern.startswith("^My") else True


@cache
def _meaning(text: str) -> _Meaning:
    words, numbers, denied = set(), set(), False
    for word in _WORD.findall(_WHEN.sub("", text.lower()).replace("can't stand", "hate").replace("gave up", "gave")):
        if word in _DENIALS or word in _AVERSIONS:
            denied = not denied
        if word in _AVERSIONS:
            words.add("like")
        elif word.isdigit() or word in _NUMBERS:
            numbers.add(_NUMBERS.get(word, word))
        elif word not in _EMPTY and word not in _DENIALS:
            words.add(_SYNONYMS.get(word, _stem(word)))
    return _Meaning(frozenset(words), frozenset(numbers), denied)


def _stem(word: str) -> str:
    """`word` without the endings of plurals, verbs and doers: smoke, smoking and smokers are one."""
    cut = re.sub(r"(?:ing|ers?|ed|es|s|e)$", "", word) if len(word) > 3 else word
    return cut[:-1] if len(cut) > 3 and cut[-1] == cut[-2] and cut != word else cut


@cache
def _examples() -> dict[str, list[str]]:
    table: dict[str, list[str]] = tomllib.loads((Path(__file__).parent / "examples.toml").read_text(encoding="utf-8"))
    return table


_CACHE = VectorCache(5_000)
