"""Reads the topics of TREC iKAT, whose form changed over the years.

2023: `[{"number": "9-1", "ptkb": {"1": "I'm vegetarian.", ...}, "turns": [{"turn_id": 1, "utterance",
"resolved_utterance", "response", "ptkb_provenance": [1], "response_provenance": ["clueweb22-...:1"]}, ...]}, ...]`.
2024: the same, but numbers are integers from 0. 2025: `ptkb` is a list of texts, the turns are called `responses`, the
utterance `user_utterance`, and `relevant_ptkbs` (in the guidelines `ptkb_provenance`) and `citations` hold texts and
passage ids; a conversation may be numbered `conv_id`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from assistant.errors import DataError
from assistant.types import Fact, now

Year = Literal[2023, 2024, 2025]
_MEND = "give the track's own file"


@dataclass(frozen=True, slots=True)
class TopicTurn:
    """A turn of a conversation as the track wrote it; `id` is `<number>_<turn_id>`.

    `relevant` are the ids of the facts that the canonical `response` draws on, `passages` those of its passages.
    """

    id: str
    utterance: str
    resolved: str
    response: str
    relevant: tuple[str, ...] = ()
    passages: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Topic:
    """A conversation, and what is known of the user: facts by the track's own numbers, from 1 where it has none."""

    number: str
    title: str
    facts: tuple[Fact, ...]
    turns: tuple[TopicTurn, ...]


@dataclass(frozen=True, slots=True)
class Topics:
    """A file of topics, and the year whose form it has."""

    file: str
    year: Year
    topics: tuple[Topic, ...]

    @property
    def turns(self) -> dict[str, tuple[Topic, TopicTurn]]:
        """Every turn by its id, in the file's order, with the topic that it belongs to."""
        return {turn.id: (topic, turn) for topic in self.topics for turn in topic.turns}

    def only(self, numbers: Collection[str]) -> Topics:
        """Those of these numbers, in the file's order; all if none is named.

        Raises:
            DataError: there is no topic of a number.
        """
        all_numbers = [topic.number for topic in self.topics]
        if missing := [number for number in numbers if number not in all_numbers]:
            raise DataError(f"{self.file} has no topic '{missing[0]}'; it has {', '.join(all_numbers)}.")
        return replace(self, topics=tuple(topic for topic in self.topics if not numbers or topic.number in numbers))


def read_topics(path: Path) -> Topics:
    """The topics of a file, whichever year's form they have.

    Raises:
        DataError: the file can't be read, or a topic or turn lacks something, or names a fact that is not there; the
            message names the file, the topic and the turn.
    """
    topics = _load(path)
    year = _year(topics)
    parsed_topics = tuple(_topic(path.name, n, topic, year) for n, topic in enumerate(topics, 1))
    repeated_turns = [
        turn for turn, count in Counter(turn.id for topic in parsed_topics for turn in topic.turns).items() if count > 1
    ]
    if repeated_turns:
        raise DataError(f"{path.name} has the turn '{repeated_turns[0]}' twice; {_MEND}.")
    return Topics(path.name, year, parsed_topics)


def _load(path: Path) -> list[Any]:
    try:
        topics = json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"The topics {path} can't be read ({error}); check the path.") from error
    except (ValueError, RecursionError) as error:
        raise DataError(f"The topics {path} are not valid JSON ({error}); {_MEND}.") from error
    if not isinstance(topics, list) or not topics:
        raise DataError(f"The topics {path} are not a list of topics; {_MEND}.")
    return topics


def _year(topics: Sequence[Any]) -> Year:
    first = topics[0] if isinstance(topics[0], dict) else {}
    if "responses" in first:
        return 2025
    return 2024 if isinstance(first.get("number"), int) else 2023


def _topic(file: str, n: int, topic: Any, year: Year) -> Topic:
    turns = topic.get("responses" if year == 2025 else "turns") if isinstance(topic, dict) else None
    number = str(topic.get("number", topic.get("conv_id", ""))).strip() if isinstance(topic, dict) else ""
    if not number or not isinstance(turns, list) or not turns:
        raise DataError(f"{file}, topic {n}, has no number or no turns; {_MEND}.")
    facts = _facts(f"{file}, topic {number}", topic.get("ptkb"))
    parsed_turns = [
        _turn(f"{file}, topic {number}, turn {turn_number}", number, turn, facts, year)
        for turn_number, turn in enumerate(turns, 1)
    ]
    return Topic(number, str(topic.get("title", "")), facts, tuple(parsed_turns))


def _facts(location: str, ptkb: Any) -> tuple[Fact, ...]:
    texts = {str(n): text for n, text in enumerate(ptkb, 1)} if isinstance(ptkb, list) else ptkb
    if not isinstance(texts, dict) or not texts:
        raise DataError(f"{location}, has no ptkb of numbered texts; {_MEND}.")
    for number, text in texts.items():
        if not isinstance(text, str) or not text.strip():
            raise DataError(f"{location}, has no text for fact {number} of its ptkb; mend or remove it.")
    moment = now()
    return tuple(Fact(str(number), text, moment, moment) for number, text in texts.items())


def _turn(location: str, number: str, turn: Any, facts: Sequence[Fact], year: Year) -> TopicTurn:
    if not isinstance(turn, dict) or "turn_id" not in turn:
        raise DataError(f"{location}, has no turn_id; {_MEND}.")
    utterance = turn.get("utterance", turn.get("user_utterance"))
    if not isinstance(utterance, str) or not utterance.strip():
        raise DataError(f"{location}, has no utterance; mend or remove it.")
    return TopicTurn(
        id=f"{number}_{turn['turn_id']}",
        utterance=utterance,
        resolved=_optional(location, turn, "resolved_utterance") or utterance,
        response=_optional(location, turn, "response"),
        relevant=_relevant(location, turn, facts, year),
        passages=tuple(_listed(location, turn, "response_provenance", "citations")),
    )


def _optional(location: str, turn: Mapping[str, Any], key: str) -> str:
    text = turn.get(key) or ""
    if not isinstance(text, str):
        raise DataError(f"{location}, has a {key} that is not text; mend it.")
    return text


def _listed(location: str, turn: Mapping[str, Any], *keys: str) -> list[str]:
    key = next((key for key in keys if key in turn), keys[0])
    values = turn.get(key) or []
    if not isinstance(values, list):
        raise DataError(f"{location}, has a {key} that is not a list; mend it.")
    return [str(value).strip() for value in values]


def _relevant(location: str, turn: Mapping[str, Any], facts: Sequence[Fact], year: Year) -> tuple[str, ...]:
    """Numbers must be facts of the ptkb; the texts of 2025 may also come from earlier conversations of the user."""
    references = _listed(location, turn, "ptkb_provenance", "relevant_ptkbs")
    ids, texts = {fact.id for fact in facts}, {fact.text.strip(): fact.id for fact in facts}
    unknown = [reference for reference in references if reference not in ids and (year != 2025 or reference.isdigit())]
    if unknown:
        raise DataError(f"{location}, names the facts {', '.join(sorted(unknown))}, which its ptkb lacks; mend it.")
    return tuple(
        reference if reference in ids else texts[reference]
        for reference in references
        if reference in ids or reference in texts
    )
