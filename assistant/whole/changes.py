"""What changed from one document to the next: sentence by sentence, told by comparing, so that nothing is made up."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from threading import Event

from assistant.grounding.evidence import Evidence
from assistant.grounding.support import Finding
from assistant.library.passages import document_of
from assistant.protocols import Embedder, Parts
from assistant.text.sentences import quote, sentences
from assistant.types import Answer, Passage, Span, Turn, Wait
from assistant.whole.lines import CERTAIN, Line, laid_out, quoted

# From this cosine on, a sentence of the one document is another form of one of the other.
SAME_MATTER = 0.75
# Dashes and apostrophes are written in several ways, and stand for nothing else; soft hyphens are not seen.
_SET = {**dict.fromkeys(map(ord, "‐‑‒–—−"), "-"), **dict.fromkeys(map(ord, "‘’ʼ"), "'"), 0xAD: None}
_HYPHEN = re.compile(r"(?<=[^\W\d_])-(?=[^\W\d_])")  # those at the end of a line are often lost
_AROUND = "\"'“”„«»()[]{}.,;:!?…*•-"
CHANGED, NEW, GONE = "Changed", "New", "Gone"
NOTHING = "Both say the same, sentence by sentence."


@dataclass(frozen=True, slots=True)
class _Place:
    """A sentence where it stands."""

    passage: Passage
    span: Span

    @property
    def text(self) -> str:
        return quote(self.passage.text, self.span)


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds `answer`: the sentences that were changed, that are new, and that are gone, each cited."""
    yield replace(turn, wait=Wait("passages", total=len(turn.passages)))
    before, after = ([_Place(one, span) for one in some for span in sentences(one.text)] for some in of_each(turn))
    gone, new = _without(before, after), _without(after, before)
    pairs = [] if stop.is_set() else _pairs(gone, new, parts.embedder)
    changed = [_change(gone[old], new[young]) for old, young in pairs]
    kept_old, kept_young = {old for old, _ in pairs}, {young for _, young in pairs}
    parts_of = {
        CHANGED: changed,
        NEW: [quoted(one.text, one.passage, one.span) for n, one in enumerate(new) if n not in kept_young],
        GONE: [quoted(one.text, one.passage, one.span) for n, one in enumerate(gone) if n not in kept_old],
    }
    lines = [line for name, found in parts_of.items() if found for line in (Line(name), *found)]
    yield laid_out(turn, lines) if lines else replace(turn, answer=Answer(NOTHING))


def of_each(turn: Turn) -> list[list[Passage]]:
    """The passages of each of the work's documents."""
    documents = turn.work.documents if turn.work else ()
    return [[one for one in turn.passages if document_of(one.id) == document] for document in documents]


def _without(places: Sequence[_Place], others: Sequence[_Place]) -> list[_Place]:
    """The sentences of the first that the others don't have, each once."""
    known = {_key(one.text) for one in others} | {""}
    found: dict[str, _Place] = {}
    for one in places:
        if (key := _key(one.text)) not in known:
            found.setdefault(key, one)
    return list(found.values())


def _key(text: str) -> str:
    """What two sentences have alike that say the same: their words and numbers, however these are set and quoted."""
    words = unicodedata.normalize("NFKC", text).casefold().translate(_SET).split()
    return " ".join(filter(None, (_HYPHEN.sub("", word.strip(_AROUND)) for word in words)))


def _pairs(gone: Sequence[_Place], new: Sequence[_Place], embedder: Embedder) -> list[tuple[int, int]]:
    """Which sentences that are gone came back in another form: each the other's nearest. In the order of the new."""
    if not gone or not new:
        return []
    vectors = embedder.encode([one.text for one in (*gone, *new)])
    near = vectors[: len(gone)] @ vectors[len(gone) :].T
    nearest = near.argmax(axis=0)
    mutual = ((int(nearest[young]), young) for young in range(len(new)) if near[nearest[young]].argmax() == young)
    return [(old, young) for old, young in mutual if near[old, young] >= SAME_MATTER]


def _change(old: _Place, young: _Place) -> Line:
    both = (Evidence(old.passage, old.span, 1.0), Evidence(young.passage, young.span, 1.0))
    return Line(f"Before: “{old.text}” Now: “{young.text}”", Finding(both, CERTAIN))
