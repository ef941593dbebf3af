"""Measures what messages are found to state of their writers, on messages in which that was marked.

One record: {"text": "No pork for me. What goes with rice?", "states": ["No pork for me."]}; `states` is empty where a
message states nothing that lasts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from assistant.experiment.datasets import Record
from assistant.experiment.measures import means
from assistant.experiment.runs import Row
from assistant.experiment.task import Summary
from assistant.protocols import Embedder
from ptkb.extract import lasting

# A statement counts as found where what was found says so much of its words: "I'm vegan" of "I am a vegan".
SAID = 0.5


class Message(Record):
    """A message, and the sentences of it that state something lasting of its writer."""

    text: Annotated[str, Field(pattern=r"\S")]
    states: tuple[str, ...]
    no_such, what, give = "no message of {text, states}", "messages", "a file of {text, states} lines"


def measure(messages: Sequence[Message], embedder: Embedder, seed: int) -> tuple[Summary, list[Row]]:
    """The share of statements that are found, and of messages without any in which one is; a row for each message."""
    rows = [
        {"id": f"message {n}", **one.model_dump(), "found": lasting(one.text, embedder)}
        for n, one in enumerate(messages, 1)
    ]
    found = [any(_says(text, one) for text in row["found"]) for row in rows for one in row["states"]]
    wrong = [bool(row["found"]) for row in rows if not row["states"]]
    shares = {name: shown for name, shown in {"recall": found, "false_alarms": wrong}.items() if shown}
    counts = {"messages": len(rows), "statements": len(found), "without": len(wrong)}
    return {**counts, "measures": means(shares, seed)}, rows


def _says(text: str, statement: str) -> bool:
    told, meant = _words(text), _words(statement)
    return len(told & meant) >= SAID * len(meant)


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))
