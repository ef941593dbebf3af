"""Measures what is offered for remembering against the personas that the speakers of a dialogue were given.

Dialogues come as Synthetic-Persona-Chat's: `{id, persona_1: [text], persona_2: [text], turns: ["User 1: text", ...]}`,
a dialogue a line. Both speakers are users, one after the other, whose every offer is accepted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from assistant.errors import DataError
from assistant.experiment.datasets import Record
from assistant.experiment.measures import means
from assistant.protocols import Embedder, Progress
from assistant.types import Fact, now
from ptkb.extract import offers

Floats = NDArray[np.float32]
# Cosines from which a statement counts as one of the persona, and below which it is like nothing that any persona says.
SAME_MIN_COSINE = 0.6
JUNK_MAX_COSINE = 0.5


@dataclass(frozen=True, slots=True)
class Speaker:
    """One side of a dialogue: what they were told to be, and what they said."""

    id: str
    persona: tuple[str, ...]
    utterances: tuple[str, ...]


class Dialogue(Record):
    """Two people who talk, each with the persona that they were given."""

    persona_1: Annotated[tuple[str, ...], Field(min_length=1)]
    persona_2: Annotated[tuple[str, ...], Field(min_length=1)]
    turns: tuple[str, ...]
    id: str | int = ""
    no_such, what = "no dialogue of {persona_1, persona_2, turns}", "dialogues"
    give = "a file of {id, persona_1, persona_2, turns} lines"


def read_speakers(path: Path) -> list[Speaker]:
    """Both speakers of every dialogue.

    Raises:
        DataError: a line is broken, or lacks personas or turns; or there are no dialogues.
    """
    return [
        speaker for n, dialogue in enumerate(Dialogue.read(path), 1) for speaker in _speakers(dialogue, f"line {n}")
    ]


def accepted_offers(speaker: Speaker, embedder: Embedder) -> list[dict[str, Any]]:
    """What was offered while the speaker spoke, each offer accepted: `{"id", "utterance", "text", "replaces"}`."""
    facts: dict[str, Fact] = {}
    rows = []
    for n, utterance in enumerate(speaker.utterances):
        for position, offer in enumerate(offers(utterance, tuple(facts.values()), embedder)):
            replaced = facts.pop(offer.replaces, None)
            moment = now()
            fact = Fact(f"{speaker.id}/{n}/{position}", offer.text, moment, moment)
            facts[fact.id] = fact
            replaces = replaced.text if replaced else ""
            rows.append({"id": fact.id, "utterance": utterance, "text": offer.text, "replaces": replaces})
    return rows


def measure(
    speakers: Sequence[Speaker], all_speakers: Sequence[Speaker], embedder: Embedder, seed: int, progress: Progress
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The measures with their 95 % bootstrap intervals, and a row for each offer.

    Precision is the share of offers that say what the speaker's persona says; recall, the share of persona statements
    that an offer says; junk, the share of offers unlike every statement of any persona. `sayable` is the recall that
    offering every sentence would reach: personas hold much that their speakers never say.
    """
    personas = sorted({text for speaker in all_speakers for text in speaker.persona})
    all_vectors = embedder.encode(personas)
    rows: list[dict[str, Any]] = []
    recalled: list[float] = []
    sayable: list[float] = []
    for done, speaker in enumerate(speakers):
        progress(done, len(speakers))
        offer_rows = accepted_offers(speaker, embedder)
        persona_vectors = embedder.encode(speaker.persona)
        rows.extend(_judged(offer_rows, speaker, persona_vectors, all_vectors, embedder))
        recalled.extend(_covered(persona_vectors, [row["text"] for row in offer_rows], embedder))
        sayable.extend(_covered(persona_vectors, speaker.utterances, embedder))
    progress(len(speakers), len(speakers))
    if not rows:
        raise DataError("Nothing was offered in these dialogues, so there is nothing to measure; take more of them.")
    shares = {
        "precision": [row["similarity"] >= SAME_MIN_COSINE for row in rows],
        "junk": [row["any_similarity"] < JUNK_MAX_COSINE for row in rows],
        "recall": recalled,
        "sayable": sayable,
    }
    utterances = sum(len(speaker.utterances) for speaker in speakers)
    counts = {"speakers": len(speakers), "utterances": utterances, "offers": len(rows), "statements": len(recalled)}
    return {
        **counts,
        "measures": means(shares, seed),
    }, rows


def _judged(
    offer_rows: Sequence[dict[str, Any]],
    speaker: Speaker,
    persona_vectors: Floats,
    all_vectors: Floats,
    embedder: Embedder,
) -> Iterator[dict[str, Any]]:
    if not offer_rows:
        return
    texts = embedder.encode([row["text"] for row in offer_rows])
    persona_similarities, all_similarities = texts @ persona_vectors.T, texts @ all_vectors.T
    for row, to_persona, to_all in zip(offer_rows, persona_similarities, all_similarities, strict=True):
        nearest = speaker.persona[int(to_persona.argmax())]
        yield {
            **row,
            "nearest": nearest,
            "similarity": round(float(to_persona.max()), 4),
            "any_similarity": round(float(to_all.max()), 4),
        }


def _covered(persona_vectors: Floats, texts: Sequence[str], embedder: Embedder) -> list[float]:
    """For each statement of the persona, whether one of the texts says it."""
    if not texts:
        return [0.0] * len(persona_vectors)
    return [
        float(similarity >= SAME_MIN_COSINE) for similarity in (persona_vectors @ embedder.encode(texts).T).max(axis=1)
    ]


def _speakers(dialogue: Dialogue, name: str) -> Iterator[Speaker]:
    for number, persona in (("1", dialogue.persona_1), ("2", dialogue.persona_2)):
        utterances = (turn.split(":", 1)[1].strip() for turn in dialogue.turns if turn.startswith(f"User {number}:"))
        yield Speaker(
            f"{dialogue.id or name}/{number}", persona, tuple(utterance for utterance in utterances if utterance)
        )
