"""Leaves out passages that don't read like a reliable source (Generate-Retrieve-Generate, section 2.2.4).

The passages ranked next take their places, so that a turn still reads as many passages as were chosen.
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
from assistant.types import DroppedPassage, Passage, Turn


def is_due(turn: Turn, parts: Parts) -> bool:  # noqa: ARG001 - called like all conditions
    """Whether a classifier is set."""
    return bool(parts.settings.turn.quality_model)


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:  # noqa: ARG001 - it is over in milliseconds
    """Puts the best passages judged reliable into `passages`, and unreliable ones ranked before them into `dropped`.

    The turn keeps as many passages as it had, chosen from its passages, its reserve and the `retrieve.fusion_depth`
    best that its queries find. If none is reliable, the passage ranked first stays, with an event: any other would be
    less likely to answer, however well it is written. Without a usable classifier all stay, with an event that says
    why.
    """
    outcome = classifier(Path(parts.settings.turn.quality_model))
    yield (
        _sifted(turn, outcome, parts) if isinstance(outcome, Classifier) else turn.with_event("quality_failed", outcome)
    )


def classifier(path: Path) -> Classifier | str:
    """The classifier in a file, or the sentence that says why it can't be used; read again only after a change."""
    try:
        changed_ns = path.stat().st_mtime_ns
    except OSError:
        changed_ns = 0
    return _loaded(path, changed_ns)


@lru_cache(maxsize=2)
def _loaded(path: Path, changed_ns: int) -> Classifier | str:  # noqa: ARG001 - a part of the cache's key
    try:
        return Classifier.load(path)
    except ModelError as error:
        return str(error)


def _sifted(turn: Turn, model: Classifier, parts: Parts) -> Turn:
    # passages that the relevance step left out are not replaced
    ranked, k = _ranked(turn, parts), len(turn.passages) or turn.choices.k
    judged = list(zip(ranked, model.judge([passage.text for passage in ranked]), strict=True))
    reliable = [passage for passage, judgement in judged if judgement.label == "reliable"]
    kept_passages, reserve = reliable[:k], [passage for passage in reliable[k:] if passage in turn.reserve]
    # If enough are reliable, passages ranked below the last of them would not have been used anyway.
    end = ranked.index([*kept_passages, *reserve][-1]) if len(kept_passages) == k else len(ranked)
    rejected = [(passage, judgement) for passage, judgement in judged[:end] if judgement.label != "reliable"]
    dropped = [DroppedPassage(passage, judgement.label, judgement.probability) for passage, judgement in rejected]
    if dropped and not kept_passages:
        turn, kept_passages, dropped = turn.with_event("none_reliable"), ranked[:1], dropped[1:]
    return replace(turn, passages=tuple(kept_passages), reserve=tuple(reserve), dropped=tuple(dropped))


def _ranked(turn: Turn, parts: Parts) -> list[Passage]:
    """The turn's passages, its reserve, and then the others that its queries find."""
    deeper = replace(turn.choices, k=parts.settings.retrieve.fusion_depth)
    present_ids = {passage.id for passage in (*turn.passages, *turn.reserve)}
    passages = search_and_fuse(replace(turn, choices=deeper), parts, *turn.queries).passages
    return [*turn.passages, *turn.reserve, *(passage for passage in passages if passage.id not in present_ids)]
