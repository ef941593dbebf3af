"""Checks a run against the rules of TREC iKAT, as its guidelines and years of submissions have them.

An error is what the track refuses or would score wrongly; a warning is what it accepts, but gives no credit for.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, TypeGuard

from assistant.errors import DataError
from assistant.ikat.play import MAX_DEPTH
from assistant.ikat.runs import MAX_RESPONSE_WORDS, word_count
from assistant.ikat.topics import Topic, Topics

PASSAGE = re.compile(r"clueweb22-en\d{4}-\d{2}-\d{5}:\d+")
KINDS = {
    2023: ("automatic", "manual"),
    2024: ("automatic", "manual", "only_response"),
    2025: ("automatic", "manual", "generation-only"),
}
Level = Literal["error", "warning"]


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with a run, and where."""

    level: Level
    location: str
    problem: str

    def __str__(self) -> str:
        return f"{self.level}: {self.location}: {self.problem}"


Problems = Iterator[Problem]


def validate(run: Path, topics: Topics) -> list[Problem]:
    """What is wrong with a run of the topics' year, in its order; nothing if the track will take it as it is.

    Raises:
        DataError: the file can't be read.
    """
    text = _text(run)
    if run.suffix == ".trec":
        return list(_trec(run.name, text, topics))
    return list(_jsonl(run.name, text, topics) if topics.year == 2025 else _json(run.name, text, topics))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"The run {path} can't be read ({error}); check the path.") from error


def _lines(text: str) -> list[str]:
    """Its lines; a text within one may hold what Unicode, but no file of JSON lines, takes for a line's end."""
    return text.removesuffix("\n").split("\n") if text else []


def _error(location: str, problem: str) -> Problem:
    return Problem("error", location, problem)


def _warning(location: str, problem: str) -> Problem:
    return Problem("warning", location, problem)


# --- 2023 and 2024: one object ------------------------------------------------------------------------------------


def _json(file: str, text: str, topics: Topics) -> Problems:
    try:
        run = json.loads(text)
    except (ValueError, RecursionError) as error:
        yield _error(file, f"it is not valid JSON ({error})")
        return
    if not isinstance(run, dict) or not isinstance(run.get("turns"), list):
        yield _error(file, "it is not an object with a list of turns")
        return
    year_fields = ("eval_response",) if topics.year == 2024 else ()
    yield from _unknown(file, run, ("run_name", "run_type", "turns", *year_fields))
    yield from _name(file, run.get("run_name"), "run_name")
    yield from _kind(file, run.get("run_type"), "run_type", topics.year)
    yield from _each_once(file, [_text_at(turn, "turn_id") for turn in run["turns"]], topics)
    for turn in run["turns"]:
        if _text_at(turn, "turn_id") in topics.turns:
            topic, _ = topics.turns[turn["turn_id"]]
            yield from _unknown(turn["turn_id"], turn, ("turn_id", "responses"))
            yield from _responses(
                turn, topic, lambda location, response, topic: _response(location, response, topic, topics.year)
            )


def _response(location: str, response: Mapping[str, Any], topic: Topic, year: int) -> Problems:
    yield from _unknown(location, response, ("rank", "text", "passage_provenance", "ptkb_provenance"))
    passages = response.get("passage_provenance")
    if not _are_objects(passages):
        yield _error(location, "passage_provenance is not a list of objects")
    else:
        yield from _passages(location, passages)
    facts = response.get("ptkb_provenance")
    if not isinstance(facts, list):
        yield _error(location, "ptkb_provenance is not a list")
    elif year == 2023:
        yield from _ranked_facts(location, facts, topic)
    else:
        yield from _numbered_facts(location, facts, topic)


def _passages(location: str, passages: Sequence[Mapping[str, Any]]) -> Problems:
    for passage in passages:
        yield from _unknown(location, passage, ("id", "text", "score", "used"))
    yield from _ids(location, [passage.get("id") for passage in passages], "passage_provenance")
    yield from _descending(location, [passage.get("score") for passage in passages], "passage_provenance")
    if passages and not any(passage.get("used") is True for passage in passages):
        yield _warning(location, "no passage is marked as used, so the top 5 will count as such")


def _ranked_facts(location: str, facts: Sequence[Any], topic: Topic) -> Problems:
    if not _are_objects(facts):
        yield _error(location, "ptkb_provenance is not a list of objects with id, text and score")
        return
    if not facts:
        yield _warning(location, "ptkb_provenance is empty, so the ranking of facts scores nothing")
    texts = {fact.id: fact.text for fact in topic.facts}
    for fact in facts:
        yield from _unknown(location, fact, ("id", "text", "score"))
        if _text_at(fact, "id") not in texts:
            yield _error(location, f"ptkb_provenance names fact {fact.get('id')!r}, which the topic's ptkb lacks")
        elif fact.get("text") != texts[fact["id"]]:
            yield _error(location, f"the text of fact {fact['id']} is not that of the topic's ptkb")
    yield from _descending(location, [fact.get("score") for fact in facts], "ptkb_provenance")


def _numbered_facts(location: str, facts: Sequence[Any], topic: Topic) -> Problems:
    fact_ids = {fact.id for fact in topic.facts}
    for fact in facts:
        if isinstance(fact, bool) or not isinstance(fact, int | str) or not str(fact).isdigit():
            yield _error(location, f"ptkb_provenance holds {fact!r}, which is not the number of a fact")
        elif str(fact) not in fact_ids:
            yield _error(location, f"ptkb_provenance names fact {fact}, which the topic's ptkb lacks")


# --- 2025: a line a turn ------------------------------------------------------------------------------------------


def _jsonl(file: str, text: str, topics: Topics) -> Problems:
    entries: list[dict[str, Any]] = []
    for n, line in enumerate(_lines(text), 1):
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError) as error:
            yield _error(f"{file}, line {n}", f"it is not valid JSON ({error})")
            continue
        if isinstance(entry, dict):
            entries.append(entry)
        else:
            yield _error(f"{file}, line {n}", "it is not an object")
    yield from _each_once(file, [_text_at(entry, "turn_id") for entry in entries], topics)
    names = {str(_text_at(entry.get("metadata"), "run_id")) for entry in entries}
    if len(names) > 1:
        yield _error(file, f"its lines have different run_ids: {', '.join(sorted(names))}")
    for entry in entries:
        if _text_at(entry, "turn_id") in topics.turns:
            yield from _entry(entry, topics.turns[entry["turn_id"]][0])


def _entry(entry: Mapping[str, Any], topic: Topic) -> Problems:
    location, metadata, references = entry["turn_id"], entry.get("metadata"), entry.get("references")
    if not isinstance(metadata, dict):
        yield _error(location, "metadata is not an object")
        metadata = {}
    else:
        yield from _metadata(location, metadata)
    if not isinstance(references, dict):
        yield _error(location, "references is not an object of passage ids and scores")
        return
    if metadata.get("run_type") != "generation-only":
        yield from _ids(location, list(references), "references")
    elif references:
        yield _error(location, "references of a generation-only run must be empty")
    yield from _numbers(location, list(references.values()), "references")
    allowed_ids = None if metadata.get("run_type") == "generation-only" else set(references)
    yield from _responses(
        entry, topic, lambda location, response, topic: _cited(location, response, topic, allowed_ids)
    )


def _metadata(location: str, metadata: Mapping[str, Any]) -> Problems:
    yield from _name(location, metadata.get("run_id"), "run_id")
    yield from _name(location, metadata.get("team_id"), "team_id")
    yield from _kind(location, metadata.get("run_type"), "run_type", 2025)
    if metadata.get("topic_id", location) != location:
        yield _error(location, f"metadata says that it is turn {metadata['topic_id']!r}")


def _cited(location: str, response: Mapping[str, Any], topic: Topic, references: set[str] | None) -> Problems:
    citations, facts = response.get("citations"), response.get("ptkb_provenance")
    if not isinstance(citations, dict):
        yield _error(location, "citations is not an object of passage ids and scores")
    else:
        if not citations:
            yield _warning(location, "it cites no passage, so the response is not assessed")
        if references is not None and set(citations) - references:
            yield _error(location, f"it cites {min(set(citations) - references)}, which its references lack")
        yield from _numbers(location, list(citations.values()), "citations")
    if not isinstance(facts, list) or not all(isinstance(fact, str) for fact in facts):
        yield _error(location, "ptkb_provenance is not a list of texts")
    else:
        fact_texts = {fact.text for fact in topic.facts}
        for fact in facts:
            if fact not in fact_texts:
                yield _warning(location, f"'{fact}' is not in the topic's ptkb; it counts as newly learned")


# --- TREC's six columns -------------------------------------------------------------------------------------------


def _trec(file: str, text: str, topics: Topics) -> Problems:
    rankings: dict[str, list[tuple[str, str, str]]] = {}
    names = set()
    for n, line in enumerate(_lines(text), 1):
        columns = line.split()
        if len(columns) != 6 or columns[1] != "Q0":
            yield _error(f"{file}, line {n}", "it does not read 'turn Q0 passage rank score run'")
            continue
        turn, _, passage, rank, score, name = columns
        rankings.setdefault(turn, []).append((passage, rank, score))
        names.add(name)
    if len(names) > 1:
        yield _error(file, f"it names several runs: {', '.join(sorted(names))}")
    yield from _each_once(file, list(rankings), topics)
    for turn, ranking in rankings.items():
        yield from _ids(turn, [passage for passage, _, _ in ranking], "the ranking")
        if [rank for _, rank, _ in ranking] != [str(n) for n in range(1, len(ranking) + 1)]:
            yield _error(turn, "its ranks do not count up from 1")
        yield from _descending(turn, [_number(score) for _, _, score in ranking], "the ranking")


# --- what the forms have in common --------------------------------------------------------------------------------


def _responses(
    turn: Mapping[str, Any], topic: Topic, check: Callable[[str, Mapping[str, Any], Topic], Problems]
) -> Problems:
    location, responses = turn["turn_id"], turn.get("responses")
    if not _are_objects(responses) or not responses:
        yield _error(location, "it has no responses")
        return
    ranks = [response.get("rank") for response in responses]
    if ranks != list(range(1, len(ranks) + 1)):
        yield _error(location, f"its responses are ranked {', '.join(map(str, ranks))}, not from 1 upwards")
    for n, response in enumerate(responses, 1):
        response_location = f"{location}, response {n}"
        text = response.get("text")
        if not isinstance(text, str) or not text.strip():
            yield _error(response_location, "it has no text")
        elif word_count(text) > MAX_RESPONSE_WORDS:
            yield _warning(response_location, f"it has {word_count(text)} words; {MAX_RESPONSE_WORDS} are read")
        yield from check(response_location, response, topic)


def _each_once(file: str, turns: Sequence[Any], topics: Topics) -> Problems:
    known_turns, seen_turns = topics.turns, set()
    for turn in turns:
        if turn not in known_turns:
            yield _error(file, f"it has the turn {turn!r}, which {topics.file} lacks")
        elif turn in seen_turns:
            yield _error(file, f"it has the turn '{turn}' twice")
        seen_turns.add(turn)
    missing = [turn for turn in known_turns if turn not in seen_turns]
    if missing:
        yield _error(
            file, f"it lacks {len(missing)} of the {len(known_turns)} turns of {topics.file}: {_first_names(missing)}"
        )


def _ids(location: str, passages: Sequence[Any], problem: str) -> Problems:
    if not passages:
        yield _warning(location, f"{problem} names no passage, so the turn scores nothing")
    if len(passages) > MAX_DEPTH:
        yield _error(location, f"{problem} names {len(passages)} passages; at most {MAX_DEPTH} are taken")
    if len(set(map(str, passages))) < len(passages):
        yield _error(location, f"{problem} names a passage twice")
    foreign_ids = [
        str(passage) for passage in passages if not isinstance(passage, str) or not PASSAGE.fullmatch(passage)
    ]
    if foreign_ids:
        yield _warning(location, f"{problem} has ids that are not ClueWeb22's, such as {foreign_ids[0]}")


def _descending(location: str, values: Sequence[Any], problem: str) -> Problems:
    yield from _numbers(location, values, problem)
    if all(map(_is_number, values)) and any(a < b for a, b in pairwise(values)):
        yield _error(location, f"the scores of {problem} do not go down")


def _numbers(location: str, values: Sequence[Any], problem: str) -> Problems:
    if not all(map(_is_number, values)):
        yield _error(location, f"{problem} has a score that is not a number")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value  # noqa: PLR0124 - NaN


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _name(location: str, name: Any, key: str) -> Problems:
    if not isinstance(name, str) or name.split() != [name]:
        yield _error(location, f"{key} is not one word")


def _kind(location: str, kind: Any, key: str, year: int) -> Problems:
    if kind not in KINDS[year]:
        yield _error(location, f"{key} is {kind!r}, not one of {', '.join(KINDS[year])}")


def _unknown(location: str, fields: Mapping[str, Any], known_fields: Sequence[str]) -> Problems:
    """The track's reader stops at a field that it does not know."""
    unknown_fields = sorted(set(fields) - set(known_fields))
    if unknown_fields:
        yield _error(location, f"it has the unknown field '{unknown_fields[0]}'")


def _are_objects(values: Any) -> TypeGuard[list[dict[str, Any]]]:
    return isinstance(values, list) and all(isinstance(value, dict) for value in values)


def _text_at(entry: Any, key: str) -> Any:
    value = entry.get(key) if isinstance(entry, dict) else None
    return value if isinstance(value, str) else None


def _first_names(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
