"""Sentences that tell the same of each of several things, such as how many people live in Norway, and in Sweden."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from assistant.figures import figures_in
from assistant.support import mentions_all
from assistant.text import quote, sentences
from assistant.types import Passage, Span

_WORD = re.compile(r"[^\W\d_]+")
# The share of common words, of all that two sentences have, from which on they tell the same of two things.
_ALIKE = 0.6

# A sentence of a passage.
Place = tuple[Passage, Span]


def counterparts(names: Sequence[str], passages: Sequence[Passage]) -> Iterator[list[Place]]:
    """For each figure that a passage on the first of the names gives: the sentence, and those like it on the others.

    A passage is on what its title names, if that is only one of the names. A figure that is not told of all of them is
    left out.
    """
    first, *others = ([*_places(name, names, passages)] for name in names)
    for place in first:
        said = _said(place, names)
        nearest = (max(other, key=lambda one: _likeness(said, _said(one, names)), default=None) for other in others)
        alike = [one for one in nearest if one and _likeness(said, _said(one, names)) >= _ALIKE]
        if len(alike) == len(others):
            yield [place, *alike]


def text_of(place: Place) -> str:
    """The sentence."""
    passage, span = place
    return quote(passage.text, span)


def _places(name: str, names: Sequence[str], passages: Sequence[Passage]) -> Iterator[Place]:
    """The sentences that give one figure, and say what of, in the passages on a name."""
    for passage in passages:
        if [one for one in names if mentions_all(passage.title, [one])] == [name]:
            found = ((passage, span) for span in sentences(passage.text))
            yield from (place for place in found if figures_in(text_of(place)) == 1 and _says_of_what(place))


def _says_of_what(place: Place) -> bool:
    """Whether a sentence has a capitalised word of the title, and so can be read without the one before it."""
    said = _WORD.findall(text_of(place))
    return any(word[0].isupper() for word in _WORD.findall(place[0].title) if word in said)


def _likeness(one: set[str], other: set[str]) -> float:
    """The share of common words, in [0, 1]."""
    return len(one & other) / len(one | other) if one | other else 0.0


def _said(place: Place, names: Sequence[str]) -> set[str]:
    """The words of a sentence, but for the name of what it is on."""
    first, *others = _WORD.findall(text_of(place))
    title = _WORD.findall(place[0].title)
    said = [first, *(word for word in others if word not in title or word.islower())]
    return {word.lower() for word in said} - {word.lower() for name in names for word in _WORD.findall(name)}
