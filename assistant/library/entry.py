"""A passage as it is given to a library."""

from __future__ import annotations

from dataclasses import dataclass

from assistant.types import Passage


@dataclass(frozen=True, slots=True)
class Entry:
    """A passage, and other words that people have for what it tells.

    `keywords` are indexed, so that the passage is found by them. They are never shown and never cited.
    """

    passage: Passage
    keywords: str = ""
