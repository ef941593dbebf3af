"""Finds the words of a text that may name a thing, and writes names plainly, so that "the Peanuts" is "peanut"."""

from __future__ import annotations

import re
from collections.abc import Container
from dataclasses import dataclass

_WORD = re.compile(r"[\w'’-]+")
# A known name has so many words at most, an unknown one so many.
_LONGEST, _UNKNOWN = 6, 2
# A name neither begins nor ends with one of these.
JOINING = frozenset(
    "a an and any are as at be but by for from has have i i'm if in into is it its me my no not of off on or our some "
    "that the their them then there these they this to too up was we will with you your".split()
)
# What stands for a name that is hidden.
_HIDDEN = "this"


@dataclass(frozen=True, slots=True)
class Name:
    """Words of a text at [start, end) that may name a thing; `known` if they surely do."""

    text: str
    start: int
    end: int
    plain: str
    known: bool


def names(text: str, known: Container[str]) -> list[Name]:
    """Known names, the longest ones, with what they begin with; and the other words, alone and by two.

    "Butter" isn't in "peanut butter", but "peanut" is.
    """
    words = list(_WORD.finditer(text))
    found, place = list[Name](), 0
    free: list[list[int]] = [[]]
    while place < len(words):
        spans = (_name(text, words, place, end) for end in range(min(place + _LONGEST, len(words)), place, -1))
        name = next((one for one in spans if one.plain in known and one.plain not in JOINING), None)
        if name is None:
            free[-1].append(place)
            place += 1
            continue
        end = next(n for n in range(place, len(words)) if words[n].end() == name.end) + 1
        inner = (_name(text, words, place, cut) for cut in range(place + 1, end))
        found += [name, *(one for one in inner if one.plain in known and one.plain not in JOINING)]
        free.append([])
        place = end
    return [*(_sure(one) for one in found), *(one for run in free for one in _unknown(text, words, run))]


def hidden(text: str, name: Name) -> str:
    """The text with a name hidden."""
    return f"{text[: name.start]}{_HIDDEN}{text[name.end :]}"


def plain(name: str) -> str:
    """A name in small letters, without an article, in the singular."""
    words = [_singular(word) for word in name.lower().replace("’", "'").split()]
    while len(words) > 1 and words[0] in ("a", "an", "the", "some"):
        del words[0]
    return " ".join(words)


def _singular(word: str) -> str:
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 4 and word.endswith(("ches", "shes", "xes", "sses", "oes")):
        return word[:-2]
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def _name(text: str, words: list[re.Match[str]], start: int, end: int) -> Name:
    at, to = words[start].start(), words[end - 1].end()
    return Name(text[at:to], at, to, plain(" ".join(word.group() for word in words[start:end])), known=False)


def _sure(name: Name) -> Name:
    return Name(name.text, name.start, name.end, name.plain, known=True)


def _unknown(text: str, words: list[re.Match[str]], run: list[int]) -> list[Name]:
    """The words of a run of unknown ones, alone and together, that neither begin nor end with a joining one."""
    return [
        _name(text, words, start, start + count)
        for start in run
        for count in range(1, _UNKNOWN + 1)
        if start + count - 1 in run
        and not {words[start].group().lower(), words[start + count - 1].group().lower()} & JOINING
    ]
