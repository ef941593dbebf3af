"""Leaves out passages that read unlike a reliable source (Generate-Retrieve-Generate, section 2.2.4).

The places of those left out go to the passages ranked next, so that a turn still reads as many as it was told to.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from threading import Event

from assistant.errors import ModelError
from assistant.judges.quality import Classifier
from assistant.protocols import Parts
from assistant.retrieve.search import search_and_fuse
from assistant.types import Dropped, Passage, Turn


def is_due(turn: Turn, parts: Parts) -> bool:  # noqa: ARG001 - asked as all steps are
    """Whether a classifier is set."""
    return bool(parts.settings.turn.quality_model)


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:  # noqa: ARG001 - it is over in milliseconds
    """Puts the best passages that are judged reliable into `passages`, and what they were preferred to into `dropped`.

    As many as the turn wants are kept, from its reserve and the `retrieve.fusion_depth` its queries find. Where
    nothing is reliable, the passage ranked first stays, with an event: one that is on something else would answer
    nothing, however well it is written. Without a usable classifier all stay, with an event that says why.
    """
    found = classifier(Path(parts.settings.turn.quality_model))
    yield _sifted(turn, found, parts) if isinstance(found, Classifier) else turn.with_event("quality_failed", found)


def classifier(path: Path) -> Classifier | str:
    """The classifier of a file, or why there is none; read once, and again only when the file has changed."""
    try:
        changed = path.stat().st_mtime_ns
    except OSError:
        changed = 0
    return _loaded(path, changed)


@lru_cache(maxsize=2)
def _loaded(path: Path, changed: int) -> Classifier | str:  # noqa: ARG001 - tells versions of the file apart
    try:
        return Classifier.load(path)
    except ModelError as error:
        return str(error)


def _sifted(turn: Turn, found: Classifier, parts: Parts) -> Turn:
    # what relevance left out takes no place again
    ranked, k = _ranked(turn, parts), len(turn.passages) or turn.choices.k
    judged = list(zip(ranked, found.judge([one.text for one in ranked]), strict=True))
    reliable = [passage for passage, said in judged if said.label == "reliable"]
    kept, reserve = reliable[:k], [passage for passage in reliable[k:] if passage in turn.reserve]
    # Where enough are reliable, what ranks below the last of them was not wanted in the first place.
    end = ranked.index([*kept, *reserve][-1]) if len(kept) == k else len(ranked)
    dropped = [Dropped(one, said.label, said.probability) for one, said in judged[:end] if said.label != "reliable"]
    if dropped and not kept:
        turn, kept, dropped = turn.with_event("none_reliable"), ranked[:1], dropped[1:]
    return replace(turn, passages=tuple(kept), reserve=tuple(reserve), dropped=tuple(dropped))


def _ranked(turn: Turn, parts: Parts) -> list[Passage]:
    """The turn's passages, its reserve, then what else its queries find."""
    deeper = replace(turn.choices, k=parts.settings.retrieve.fusion_depth)
    seen = {passage.id for passage in (*turn.passages, *turn.reserve)}
    found = search_and_fuse(replace(turn, choices=deeper), parts, *turn.queries).passages
    return [*turn.passages, *turn.reserve, *(passage for passage in found if passage.id not in seen)]
