"""Which of two compared things has the higher figure: worked out, since small models can't tell.

What the figures mean is left to the reader: the higher of two exports doesn't make the richer country.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf

_SCALE = {"thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}
_LENGTH = r"(?:(?:kilo)?met(?:er|re)s?|km|miles?|feet)"
_UNIT = (
    rf"%|percent|(?:square |sq\.? ?)?{_LENGTH}|years?|days?|hours?|minutes?|kilograms?|kg|grams?|milligrams?|mg|"
    "lit(?:er|re)s?|calories|degrees|dollars|euros"
)
_NUMBER = r"\d+(?:,\d{3})*(?:\.\d+)?(?![\d,]*\d)"
# "10.6 million", "100 to 140 mg", "over 5"; what is said per 100 grams is no figure of its own.
_FIGURE = re.compile(
    rf"(?:\b(?:(?P<above>over|above|more than|at least)|(?P<below>under|below|less than|fewer than|at most|up to)) )?"
    rf"(?<![\w.,−-])(?<!per )(?<!minus )[$€£]?(?P<low>{_NUMBER})(?:(?: to |[-–])(?P<high>{_NUMBER}))?"
    rf"(?:[ -](?P<scale>{'|'.join(_SCALE)})\b)?(?:[ -]?(?P<unit>{_UNIT})(?!\w))?",
    re.IGNORECASE,
)
_YEAR = re.compile(r"(?:1\d|20)\d\d")
_ASIDE = re.compile(r"\([^()]*\)")
_AGAIN = re.compile(r"it\b", re.IGNORECASE)
_UNSAID = re.compile(r"\b(?:not|never|neither|nor)\b|n['’]t\b", re.IGNORECASE)
_MORE = re.compile(r"\b(?:more|(?:larg|bigg|long|high|great)er)\b", re.IGNORECASE)
_LESS = re.compile(r"\b(?:less|fewer|(?:small|short|low)er)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Higher:
    """The outcome of a comparison by figures: `name` has the higher one, `other` the lower one.

    `places` says in which of the sentences they stand, in order.
    """

    name: str
    other: str
    places: tuple[int, ...]

    def __str__(self) -> str:
        return f"Of the two figures, {self.name}'s is the higher."

    def contradicts(self, sentence: str) -> bool:
        """Whether a plain sentence without figures says that the other has more: "Malta is smaller (than Monaco)"."""
        less, more = bool(_LESS.search(sentence)), bool(_MORE.search(sentence))
        head = sentence.partition(" than ")[0]
        subjects = [name for _, name in _mentions(head, (self.name, self.other))]
        if less is more or len(subjects) != 1 or _UNSAID.search(sentence) or _FIGURE.search(sentence):
            return False
        return subjects[0] != (self.other if less else self.name)


@dataclass(frozen=True, slots=True)
class _Figure:
    """From `low` to `high`, the same but for a range or a bound, of this unit; `place` is that of its sentence."""

    place: int
    low: float
    high: float
    unit: str


def higher(sentences: Sequence[str], names: Sequence[str], usable: Sequence[bool]) -> Higher | None:
    """Which of two things has the higher figure, as far as the usable sentences give one of one unit for each."""
    found: dict[str, list[_Figure]] = {name: [] for name in names}
    for place, (sentence, use) in enumerate(zip(sentences, usable, strict=True)):
        for name, low, high, unit in _figures(sentence, names) if use else ():
            found[name].append(_Figure(place, low, high, unit))
    if len(found) != 2 or any(len(figures) != 1 for figures in found.values()):
        return None
    (one, [first]), (other, [second]) = found.items()
    places = tuple(sorted({first.place, second.place}))
    if first.unit == second.unit and first.low > second.high:
        return Higher(one, other, places)
    return Higher(other, one, places) if first.unit == second.unit and second.low > first.high else None


def figures_in(sentence: str) -> int:
    """How many figures a sentence gives, of whatever it may be; what stands in brackets is left out."""
    return sum(1 for found in _FIGURE.finditer(_ASIDE.sub(" ", sentence)) if _read(found))


def spelt_out(sentences: Sequence[str], names: Sequence[str]) -> list[str]:
    """The sentences, one that begins with "it" with the name that the one before mentions first instead."""
    found: list[str] = []
    subject = ""
    for sentence in sentences:
        again = _AGAIN.match(sentence) if subject else None
        found.append(f"{subject[0].upper()}{subject[1:]}{sentence[again.end() :]}" if again else sentence)
        mentioned = _mentions(found[-1], names)
        subject = mentioned[0][1] if mentioned else subject
    return found


def _figures(text: str, names: Sequence[str]) -> Iterator[tuple[str, float, float, str]]:
    """The name, the lowest and highest value and the unit of what stands between a mention and the next."""
    text = _ASIDE.sub(" ", text)
    places = [*_mentions(text, names), (len(text), "")]
    if any(_read(found) for found in _FIGURE.finditer(text, 0, places[0][0])):
        return  # "4 % in Norway": a figure that stands before its name might be taken for another's
    for (start, name), (end, _) in pairwise(places):
        for found in _FIGURE.finditer(text, start, end):
            if figure := _read(found):
                yield name, *figure


def _mentions(text: str, names: Sequence[str]) -> list[tuple[int, str]]:
    return sorted(
        (found.start(), name) for name in names for found in re.finditer(rf"\b{re.escape(name)}\b", text, re.IGNORECASE)
    )


def _read(found: re.Match[str]) -> tuple[float, float, str] | None:
    """The lowest and the highest value, and the unit, spelt one way; None for a year."""
    low, high, scale, unit = found["low"], found["high"], found["scale"], (found["unit"] or "").lower()
    if not scale and not unit and _YEAR.fullmatch(low):
        return None
    unit = re.sub(r"sq(?!uare)\.? ?", "square ", unit).replace("km", "kilometer").replace("metre", "meter").rstrip("s")
    times = _SCALE.get((scale or "").lower(), 1.0)
    least, most = _value(low) * times, _value(high or low) * times
    return -inf if found["below"] else least, inf if found["above"] else most, unit


def _value(number: str) -> float:
    return float(number.replace(",", ""))
