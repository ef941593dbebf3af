"""Measures the extraction of lasting statements that messages make of their writers, on labelled messages.

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
from ptkb.extract import lasting_statements

# A statement counts as found where what was found says so much of its words: "I'm vegan" of "I am a vegan".
MIN_WORD_SHARE = 0.5


class Message(Record):
    """A message, and the sentences of it that state something lasting of its writer."""

    text: Annotated[str, Field(pattern=r"\S")]
    states: tuple[str, ...]
    no_such, what, give = "no message of {text, states}", "messages", "a file of {text, states} lines"


def measure(messages: Sequence[Message], embedder: Embedder, seed: int) -> tuple[Summary, list[Row]]:
    """The share of statements that are found, and of messages without any in which one is; a row for each message."""
    rows = [
        {"id": f"message {n}", **message.model_dump(), "found": lasting_statements(message.text, embedder)}
        for n, message in enumerate(messages, 1)
    ]
    found_flags = [
        any(_has_words_of(text, statement) for text in row["found"]) for row in rows for statement in row["states"]
    ]
    false_alarm_flags = [bool(row["found"]) for row in rows if not row["states"]]
    shares = {
        name: flags for name, flags in {"recall": found_flags, "false_alarms": false_alarm_flags}.items() if flags
    }
    counts = {"messages": len(rows), "statements": len(found_flags), "without": len(false_alarm_flags)}
    return {**counts, "measures": means(shares, seed)}, rows


def _has_words_of(text: str, statement: str) -> bool:
    text_words, statement_words = _words(text), _words(statement)
    return len(text_words & statement_words) >= MIN_WORD_SHARE * len(statement_words)


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))
