"""Whether a passage says what a sentence says. Sounding alike is not enough.

Two readings have to agree: code compares names and numbers, which embeddings and small models blur; the
language model is asked yes or no, and its probability of yes is the support.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile
from threading import Event
from typing import NamedTuple

from assistant.prompt import render
from assistant.text import quote, sentences
from assistant.types import LLM

_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
# Years, as far as can be seen: four digits alone. Those that end in two zeros may be other numbers, rounded.
_YEAR = re.compile(r"(?<![\w.,])(?:1\d|20)(?!00)\d\d(?![\w]|[.,]\d)")
# "1939-45", and what is no part of a number in words: "two hundred and fifty".
_SPAN = re.compile(r"(?<![\w.,-])(1\d|20)(\d\d)[-–/](\d\d)(?![\w-]|[.,]\d)")
_AND = re.compile(r"(?<=hundred) and (?=[a-z])")
# A number may be rounded by this share, and counts up to this one need not be in the text.
ROUNDING = 0.04
COUNTED = 10
# So many words in a row that are in a passage are quoted from it. Fewer may lose what negates or limits them.
QUOTED = 12
_SCALE = {"hundred": 100.0, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}
_WORDED = {
    word: float(n)
    for n, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
        "seventeen eighteen nineteen twenty".split()
    )
} | {"thirty": 30.0, "forty": 40.0, "fifty": 50.0, "sixty": 60.0, "seventy": 70.0, "eighty": 80.0, "ninety": 90.0}
_TENS = frozenset(range(20, 100, 10))
# More or less of what can be counted or measured; what is better may well be told by a passage.
_COMPARING = re.compile(
    r"\b(?:more|less|fewer|most|least|than|(?:larg|bigg|small|long|short|high|low|great|old|young|rich|poor|heav|light|"
    r"warm|cold|fast|slow|deep|wide|tall|cheap)\w*(?:er|est))\b",
    re.IGNORECASE,
)
# Of what something is so much, as the Factbook tells sizes.
_RATIO = re.compile(
    r"\b(?:half|twice|double|thrice|triple|\w+ times|(?:\w+-)?(?:third|quarter|fifth|tenth)s?)\b", re.IGNORECASE
)
_CLAUSE = re.compile(r"[;.]\s")
_HUNG = re.compile(r"(?<=[^\W\d_]{2})(?:'|-[a-z]).*$")
_COMMON = frozenset(
    "a an the and or but of to in on at by for with from as is are was were be been being it its this that these those "
    "you your i my we our they their he she his her can may might will would should could do does did has have had "
    "not no also such so than then there here which who what when where how if into about up out more most some any "
    "other one very much many each both while".split()
)


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence, the text that may support it, and what was given besides (the user's facts, the question)."""

    sentence: str
    title: str
    evidence: str
    given: str = ""


class Shown(NamedTuple):
    """A passage's title, and what the model is shown of its text."""

    title: str
    text: str


def supports(claims: Sequence[Claim], llm: LLM, stop: Event) -> list[float]:
    """For each claim the support in [0, 1]: the model's probability of yes.

    It is 0 where names or numbers are missing, and 1 for a long quotation, without asking.
    """
    plain = [1.0 if is_quotation(claim) else None if contradiction(claim) is None else 0.0 for claim in claims]
    open_ = [claim for claim, known in zip(claims, plain, strict=True) if known is None]
    prompts = [
        render("support", sentence=claim.sentence, title=claim.title, evidence=claim.evidence) for claim in open_
    ]
    choices = iter(llm.choose(prompts, ("yes", "no"), stop) if prompts else [])
    return [next(choices).probabilities["yes"] if known is None else known for known in plain]


def is_quotation(claim: Claim) -> bool:
    """Whether the sentence stands in the evidence word for word, and is long enough to carry its meaning along."""
    said, there = (" ".join(_WORD.findall(text.lower())) for text in (claim.sentence, claim.evidence))
    return said.count(" ") + 1 >= QUOTED and f" {said} " in f" {there} "


def coverage(sentence: str, text: str) -> float:
    """The share, in [0, 1], of the sentence's words that the text has too, by how they begin; common words left out."""
    said, there = _stems(sentence), _stems(text)
    return len(said & there) / len(said) if said else 0.0


def _stems(text: str) -> set[str]:
    return {word[:5] for word in _WORD.findall(text.lower()) if word not in _COMMON}


def contradiction(claim: Claim) -> str | None:
    """What the sentence names that the evidence does not, in words, or None."""
    there = f"{claim.title} {claim.evidence} {claim.given}"
    known = _numbers(there)
    numbers = [number for number in _numbers(claim.sentence) if not any(_is_about(number, one) for one in known)]
    numbers += _years(claim.sentence) - known
    if numbers:
        return f"number {min(numbers):g}"
    names = [name for name in _names(claim.sentence) if not _mentions(there, name)]
    if names:
        return f"name {names[0]}"
    return next(
        (f"{ratio} of {name}" for ratio, name in _ratios(claim.sentence) if _is_other(ratio, name, claim)), None
    )


def disagree(one: str, other: str) -> bool:
    """Whether each of two sentences gives a number, or a name, that the other lacks."""
    return all(_lacks(a, b) for a, b in ((one, other), (other, one))) or (_unnamed(one, other) and _unnamed(other, one))


def compares(sentence: str) -> bool:
    """Whether a sentence says, or asks, that one thing has more or less of something than another."""
    return bool(_COMPARING.search(sentence))


def mentions_all(text: str, names: Sequence[str]) -> bool:
    """Whether a text mentions each of some things, by how their words begin."""
    words = [word for name in names for word in name.split()]
    return all(_mentions(text, word, words) for word in words)


def complete_each_other(sentence: str, one: str, other: str) -> bool:
    """Whether each of two texts mentions a name of the sentence, its first word included, that the other lacks."""
    first = _WORD.findall(sentence)[:1]
    names = [*_names(sentence), *(word for word in first if word[0].isupper() and word.lower() not in _COMMON)]
    return all(
        any(_mentions(a, name, names) and not _mentions(b, name, names) for name in names)
        for a, b in ((one, other), (other, one))
    )


def mixes_up(sentence: str, one: Shown, other: Shown) -> bool:
    """Whether a number that the sentence tells of what one text is about stands in the other alone.

    A number is told of the name before it: "Portugal exports 144 billion, Spain 136", where 136 is what Portugal
    imports. Where numbers stand before the names, or one name has none, that can't be told.
    """
    told = _told_of(sentence, one.title, other.title)
    return any(
        not any(_is_about(number, known) for known in _numbers(_about(name, mine, others)))
        for mine, others, found in ((one, other, told[0]), (other, one, told[1]))
        for name, number in found
    )


def _told_of(sentence: str, one: str, other: str) -> tuple[list[tuple[str, float]], list[tuple[str, float]]]:
    """The numbers that a sentence tells of what only one of two titles names, and of what only the other does."""
    found = _WORD.finditer(sentence)
    words = [word for word in found if word.group()[0].isupper() and word.group().lower() not in _COMMON]
    sides = [(_mentions(one, word.group()), _mentions(other, word.group())) for word in words]
    places = [(word.start(), word.group(), side) for word, side in zip(words, sides, strict=True) if sum(side) == 1]
    ends = [place for place, _, _ in places[1:]] + [len(sentence)]
    told: tuple[list[tuple[str, float]], list[tuple[str, float]]] = ([], [])
    for (start, name, (first, _)), end in zip(places, ends, strict=True):
        told[0 if first else 1].extend((name, number) for number in _numbers(sentence[start:end]))
    before = _numbers(sentence[: places[0][0]]) if places else set()
    return told if all(told) and not before else ([], [])


def _about(name: str, own: Shown, other: Shown) -> str:
    """What is shown of the name's own passage, and the sentences of the other that mention it."""
    quotes = (quote(other.text, span) for span in sentences(other.text))
    return " ".join([own.title, own.text, *(one for one in quotes if _mentions(one, name))])


def _ratios(sentence: str) -> list[tuple[str, str]]:
    """Each ratio of a sentence with the name behind it: ("twice", "China") of "twice the size of China"."""
    places = [*_RATIO.finditer(sentence)]
    bounds = [*(place.start() for place in places), len(sentence)]
    behind = (_names(sentence[start:end]) for start, end in pairwise(bounds))
    return [(place.group().lower(), names[0]) for place, names in zip(places, behind, strict=True) if names]


def _is_other(ratio: str, name: str, claim: Claim) -> bool:
    """Whether what is told has this ratio of something else: "larger than China; twice the size of Peru"."""
    clauses = _CLAUSE.split(claim.evidence)
    told = [other for clause in clauses for one, other in _ratios(clause) if one == ratio]
    return bool(told) and not _mentions(claim.title, name) and not any(_mentions(other, name) for other in told)


def _lacks(said: str, there: str) -> bool:
    """Whether a text gives a number, or a year, that the other doesn't."""
    known = _numbers(there, above=0)
    strange = (not any(_is_about(n, one) or _is_about(one, n) for one in known) for n in _numbers(said, above=0))
    return any(strange) or not _years(said) <= known


def _unnamed(said: str, there: str) -> bool:
    return any(not _mentions(there, name) for name in _names(said))


def _numbers(text: str, above: float = COUNTED) -> set[float]:
    """The numbers of a text, however written: "2,000,000", "2 million" and "two million" are one."""
    text = _SPAN.sub(r"\1\2 \1\3", _AND.sub(" ", text.lower())).replace("-", " ")
    found: set[float] = set()
    number, before = None, ""
    for word in re.findall(r"\d+(?:[.,]\d+)*|[a-z]+", text):
        larger = _grown(number, before, word)
        if larger is None:
            if number is not None:
                found.add(number)
            larger = _value(word)
        number, before = larger, word
    if number is not None:
        found.add(number)
    # Small counts ("two prizes", "the 3 methods") sum up what a text lists without saying the number.
    return {number for number in found if number > above}


def _grown(number: float | None, before: str, word: str) -> float | None:
    """The number that goes on with this word: "twenty" with "five", "two hundred" with "ten", "32" with "thousand"."""
    if number is None:
        return None
    if word in _SCALE:
        return number * _SCALE[word]
    more = _WORDED.get(word, 0)
    below = 100 if before == "hundred" else 10 if _WORDED.get(before) in _TENS else 0
    return number + more if 0 < more < below else None


def _is_about(said: float, known: float) -> bool:
    """Whether `known` may be told as `said`: 5,509,733 is 5.5 million, 82.9 is more than 80."""
    return abs(said - known) <= ROUNDING * abs(known)


def _value(word: str) -> float | None:
    if word[0].isdigit():
        digits = word.replace(",", "")
        return float(digits) if digits.count(".") <= 1 else None
    return _WORDED.get(word)


def _years(text: str) -> set[float]:
    """The years of a text, which nobody rounds."""
    return {float(year) for year in _YEAR.findall(_SPAN.sub(r"\1\2 \1\3", text))}


def _names(sentence: str) -> list[str]:
    """Capitalised words, but for the first word of the sentence and "I"."""
    words = [match.group() for match in _WORD.finditer(sentence)]
    return [word for word in words[1:] if word[0].isupper() and len(word) > 1 and word.lower() not in _COMMON]


def _mentions(text: str, name: str, others: Sequence[str] = ()) -> bool:
    """Whether a word of the text begins as the name does: "Kenyan" and "Kenya's" are mentions of "Kenya".

    A word that is more like one of the `others` is none of this name: "Australia" doesn't mention "Austria".
    """
    name = _bare(name)
    words = [word for word in map(_bare, _WORD.findall(text)) if word.startswith(name[:5])]
    return any(all(_likeness(word, name) >= _likeness(word, _bare(other)) for other in others) for word in words)


def _bare(name: str) -> str:
    """The name without what hangs on it: "Peru's", "UK-wide"."""
    return _HUNG.sub("", name.replace("’", "'")).lower()


def _likeness(word: str, name: str) -> tuple[int, bool]:
    """How many letters both begin with, and whether they are the same."""
    alike = takewhile(lambda pair: pair[0] == pair[1], zip(word, name, strict=False))
    return sum(1 for _ in alike), word == name
