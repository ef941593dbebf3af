"""The pairs that were written one by one, of a fact and a text, and of a fact, a question and what is told in reply."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Literal

WRITTEN_PATH, ASKED_PATH = (Path(__file__).with_name(name) for name in ("written.jsonl", "asked.jsonl"))
# One of so many facts is kept apart.
HELD_OUT_ONE_IN = 6
# The kind of texts that offer nothing by themselves, and may where somebody asks for something to have or do.
TELLING = "telling"


@dataclass(frozen=True, slots=True)
class WrittenPair:
    """A pair, as the reply to a `question` if there is one; `kind` says what makes it clash, or why it doesn't."""

    fact: str
    text: str
    clash: bool
    kind: str
    question: str = ""


@cache
def read_written(part: Literal["train", "dev"], path: Path = WRITTEN_PATH) -> tuple[WrittenPair, ...]:
    """The written pairs of the facts to learn from, or of those kept apart."""
    rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    pairs = (WrittenPair(**{**row, "clash": bool(row["clash"])}) for row in rows)
    return tuple(pair for pair in pairs if _is_apart(pair.fact) == (part == "dev"))


def _is_apart(fact: str) -> bool:
    return int(sha256(fact.lower().encode()).hexdigest(), 16) % HELD_OUT_ONE_IN == 0
