"""What the model will read of each passage: its best sentences, or a summary of them made blind to the question."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from threading import Event

from assistant.budget import fit
from assistant.steps.sentences import best_sentences
from assistant.types import Digest, Options, Parts, Passage, Turn

_ROOM = 100


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds `digests`, one for each passage and in their order (GRG, sections 2.2.3 and 2.2.5)."""
    knobs = parts.settings.turn
    digests = best_sentences(turn.passages, turn.contextual, parts.embedder, knobs.digest_chars)
    if knobs.digest == "llm":
        digests = _summaries(turn, digests, parts, stop)
    yield turn.grow(digests=digests)


def _summaries(turn: Turn, digests: tuple[Digest, ...], parts: Parts, stop: Event) -> tuple[Digest, ...]:
    prompts = [
        fit("digest", parts.llm, _ROOM, passage=Passage(passage.id, passage.title, digest.text))[0]
        for passage, digest in zip(turn.passages, digests, strict=True)
    ]
    completions = parts.llm.complete(prompts, Options(max_tokens=_ROOM), stop)
    return tuple(
        replace(digest, text=completion.text.strip() or digest.text)
        for digest, completion in zip(digests, completions, strict=True)
    )
