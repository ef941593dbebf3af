"""Leaves out passages that read unlike a reliable source (Generate-Retrieve-Generate, section 2.2.4)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from threading import Event

from assistant.errors import ModelError
from assistant.quality import Classifier
from assistant.types import Dropped, Parts, Turn

NONE_RELIABLE = "None of the passages was judged reliable, so only the best match was kept."
NOT_JUDGED = "Unreliable passages were not left out: "


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:  # noqa: ARG001 - it is over in milliseconds
    """Takes what is not judged reliable from `passages` and adds it as `dropped`.

    Where nothing is reliable, the passage ranked first stays, with an event: a well-written one on something else would
    answer nothing. Without a usable classifier all stay, with an event that says why.
    """
    found = classifier(Path(parts.settings.turn.quality))
    yield _sifted(turn, found) if isinstance(found, Classifier) else _with_event(turn, NOT_JUDGED + found)


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


def _sifted(turn: Turn, found: Classifier) -> Turn:
    judged = list(zip(turn.passages, found.judge([one.text for one in turn.passages]), strict=True))
    kept = tuple(passage for passage, judgement in judged if judgement.label == "reliable")
    if judged and not kept:
        turn, kept = _with_event(turn, NONE_RELIABLE), turn.passages[:1]
    dropped = tuple(Dropped(one, said.label, said.probability) for one, said in judged if one not in kept)
    return turn.grow(passages=kept, dropped=dropped)


def _with_event(turn: Turn, event: str) -> Turn:
    """Said once, though a loop may judge passages several times."""
    return turn if event in turn.events else turn.grow(events=(*turn.events, event))
