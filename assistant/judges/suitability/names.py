"""Finds the words of a text that may name a thing, and writes names plainly, so that "the Peanuts" is "peanut"."""

from __future__ import annotations

import re
from collections.abc import Container
from dataclasses import dataclass

_WORD = re.compile(r"[\w'’-]+")
# The most words of a known name, and of an unknown one.
_MAX_KNOWN_WORDS, _MAX_UNKNOWN_WORDS = 6, 2
# A name neither begins nor ends with one of these.
JOINING = frozenset(
    "a an and any are as at be but by for from has have i i'm if in into is it its me my no not of off on or our some "
    "that the their them then there these they this to too up was we will with you your".split()
)
# What replaces a hidden name.
_PLACEHOLDER = "this"


@dataclass(frozen=True, slots=True)
class Name:
    """Words of a text at [start, end) that may name a thing; `known` if they surely do."""

    text: str
    start: int
    end: int
    plain: str
    known: bool


def names(text: str, known_names: Container[str]) -> list[Name]:
    """The longest known names, with the shorter names that they begin with; and other words, alone and in pairs.

    "Peanut butter" contains "peanut" as a name, but not "butter".
    """
    words = list(_WORD.finditer(text))
    matches, position = list[Name](), 0
    unknown_runs: list[list[int]] = [[]]
    while position < len(words):
        spans = (
            _name_at(text, words, position, end)
            for end in range(min(position + _MAX_KNOWN_WORDS, len(words)), position, -1)
        )
        name = next((span for span in spans if span.plain in known_names and span.plain not in JOINING), None)
        if name is None:
            unknown_runs[-1].append(position)
            position += 1
            continue
        end = next(n for n in range(position, len(words)) if words[n].end() == name.end) + 1
        inner = (_name_at(text, words, position, inner_end) for inner_end in range(position + 1, end))
        matches += [name, *(span for span in inner if span.plain in known_names and span.plain not in JOINING)]
        unknown_runs.append([])
        position = end
    return [
        *(_as_known(span) for span in matches),
        *(span for run in unknown_runs for span in _unknown_names(text, words, run)),
    ]


def hidden(text: str, name: Name) -> str:
    """The text with a name hidden."""
    return f"{text[: name.start]}{_PLACEHOLDER}{text[name.end :]}"


def plain(name: str) -> str:
    """A name in lower case, without an article, in the singular."""
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


def _name_at(text: str, words: list[re.Match[str]], start: int, end: int) -> Name:
    start_offset, end_offset = words[start].start(), words[end - 1].end()
    return Name(
        text[start_offset:end_offset],
        start_offset,
        end_offset,
        plain(" ".join(word.group() for word in words[start:end])),
        known=False,
    )


def _as_known(name: Name) -> Name:
    return Name(name.text, name.start, name.end, name.plain, known=True)


def _unknown_names(text: str, words: list[re.Match[str]], run: list[int]) -> list[Name]:
    """Names from a run of unknown words, alone and in pairs; none begins or ends with a joining word."""
    return [
        _name_at(text, words, start, start + count)
        for start in run
        for count in range(1, _MAX_UNKNOWN_WORDS + 1)
        if start + count - 1 in run
        and not {words[start].group().lower(), words[start + count - 1].group().lower()} & JOINING
    ]
