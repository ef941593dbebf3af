"""Writes a played run as TREC iKAT wants it submitted: the year's own form, and TREC's six columns.

2023 and 2024 take one JSON object; PTKB provenance is ranked with scores in 2023, and a list of numbers in 2024:

    {"run_name": "grg1", "run_type": "automatic", "turns": [{"turn_id": "9-1_3", "responses": [{"rank": 1,
     "text": "The DASH diet ...", "ptkb_provenance": [{"id": "5", "text": "I'm vegetarian.", "score": 0.61}],
     "passage_provenance": [{"id": "clueweb22-...:1", "text": "...", "score": 1.0, "used": true}, ...]}]}, ...]}

2025 takes a JSON line for each turn:

    {"turn_id": "1-2_3", "metadata": {"team_id": "us", "run_id": "grg1", "run_type": "automatic",
     "topic_id": "1-2_3"}, "references": {"clueweb22-...:1": 1.0, ...}, "responses": [{"rank": 1, "text": "...",
     "citations": {"clueweb22-...:1": 1.0}, "ptkb_provenance": ["I live in the Netherlands."]}]}
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from assistant.errors import DataError, disk_errors_as
from assistant.experiment.runs import CLAIM, ROWS, Row, jsonl
from assistant.ikat.play import RunType
from assistant.ikat.topics import Topics
from assistant.text.sentences import quote, sentences

# The longest response that is assessed, in words.
MAX_RESPONSE_WORDS = 250
ResponseSource = Literal["answer", "digests"]
# A run called so would be written over what was played. Some systems ignore the case of a file's name.
_RESERVED_NAMES = {Path(file).stem for file in (CLAIM, ROWS)}
_TOKEN = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class RunLabel:
    """What a run is called. `reply` says what its responses are: our answers, or the digests joined, as the paper's."""

    name: str
    team: str = "sequitur"
    kind: RunType = "automatic"
    reply: ResponseSource = "answer"

    def __post_init__(self) -> None:
        """Refuse a name that the six columns can't hold, or that can't name a file of its own in the run's folder.

        Raises:
            DataError: the name is empty, has a space or a slash in it, or is that of a file which every run has.
        """
        if not _is_word(self.name):
            raise DataError(f"'{self.name}' can't name a run; use one word.")
        if "/" in self.name or "\\" in self.name:
            raise DataError(f"'{self.name}' can't name a run, whose files are called after it; leave out the slash.")
        if self.name.casefold() in _RESERVED_NAMES:
            raise DataError(f"'{self.name}' is what the run's own files are called; choose another name.")

    def check(self, year: int) -> None:
        """Refuse a team that the year's form can't hold.

        Raises:
            DataError: the form is that of 2025, and the team is not one word.
        """
        if year == 2025 and not _is_word(self.team):
            raise DataError(f"'{self.team}' can't name the team of a run of 2025; use one word for --team.")


def write_run(topics: Topics, rows: Mapping[str, Row], label: RunLabel, folder: Path) -> tuple[Path, Path]:
    """Write `<name>.json` (2025: `.jsonl`) and `<name>.trec` into the folder, and return where.

    Raises:
        DataError: a turn of the topics was not played, or the folder can't be written.
    """
    missing = [turn for turn in topics.turns if turn not in rows]
    if missing:
        raise DataError(f"{len(missing)} turns of {topics.file} were not played yet, first '{missing[0]}'.")
    played = [rows[turn] for turn in topics.turns]
    run_text = (
        jsonl(_line(row, label) for row in played) if topics.year == 2025 else _object(played, label, topics.year)
    )
    run = folder / f"{label.name}.{'jsonl' if topics.year == 2025 else 'json'}"
    trec = folder / f"{label.name}.trec"
    with disk_errors_as(DataError, f"The run can't be written to {folder}"):
        run.write_text(run_text, encoding="utf-8")
        trec.write_text("".join(trec_lines(row, label.name) for row in played), encoding="utf-8")
    return run, trec


def trec_lines(row: Row, name: str) -> str:
    """A turn's ranking in TREC's six columns: turn, Q0, passage, rank, score and run."""
    lines = enumerate(scores(row["ranking"]).items(), 1)
    return "".join(f"{row['id']} Q0 {passage} {rank} {score} {name}\n" for rank, (passage, score) in lines)


def scores(ranking: Sequence[str]) -> dict[str, float]:
    """A score that says the order and no more, as a ranking may have been put together from several: 1 / rank."""
    return {passage: round(1 / rank, 8) for rank, passage in enumerate(ranking, 1)}


def submitted_response(row: Row, reply: ResponseSource) -> str:
    """What is submitted as the reply, at most `MAX_RESPONSE_WORDS` long."""
    text = row["digests"] or row["response"] if reply == "digests" else row["response"]
    return truncated(text, MAX_RESPONSE_WORDS)


def word_count(text: str) -> int:
    """How long the track counts a text, or somewhat more: its tokenizer, too, counts punctuation as words."""
    return len(_TOKEN.findall(unicodedata.normalize("NFKC", text)))


def truncated(text: str, max_words: int) -> str:
    """`text`, or its first sentences of at most `max_words` words in all; of a longer first one, its first words."""
    prefix = ""
    for span in sentences(text):
        longer_prefix = text[: span.end]
        if word_count(longer_prefix) > max_words:
            break
        prefix = longer_prefix
    if prefix or word_count(text) <= max_words:
        return prefix or text
    first_sentence = unicodedata.normalize("NFKC", quote(text, sentences(text)[0]))
    ends = [token.end() for token in _TOKEN.finditer(first_sentence)]
    return first_sentence[: ends[max_words - 1]]


def _is_word(name: str) -> bool:
    return name.split() == [name]


def _object(played: Sequence[Row], label: RunLabel, year: int) -> str:
    turns = [{"turn_id": row["id"], "responses": [_response(row, label, year)]} for row in played]
    # 2024 assesses the responses of those runs alone that ask for it; 2023 knows no such field.
    year_fields = {"eval_response": True} if year == 2024 else {}
    run = {"run_name": label.name, "run_type": label.kind, **year_fields, "turns": turns}
    return json.dumps(run, ensure_ascii=False, indent=1) + "\n"


def _response(row: Row, label: RunLabel, year: int) -> dict[str, Any]:
    used = row["used"]
    return {
        "rank": 1,
        "text": submitted_response(row, label.reply),
        "ptkb_provenance": _ranked_facts(row) if year == 2023 else [int(fact["id"]) for fact in _used_facts(row)],
        "passage_provenance": [
            {
                "id": passage_id,
                **({"text": used[passage_id]} if passage_id in used else {}),
                "score": score,
                "used": passage_id in used,
            }
            for passage_id, score in scores(row["ranking"]).items()
        ],
    }


def _ranked_facts(row: Row) -> list[dict[str, Any]]:
    return [{"id": fact["id"], "text": fact["text"], "score": fact["score"]} for fact in row["facts"]]


def _used_facts(row: Row) -> list[dict[str, Any]]:
    return [fact for fact in row["facts"] if fact["used"]]


def _line(row: Row, label: RunLabel) -> dict[str, Any]:
    references = scores(row["ranking"])
    return {
        "turn_id": row["id"],
        "metadata": {"team_id": label.team, "run_id": label.name, "run_type": label.kind, "topic_id": row["id"]},
        "references": references,
        "responses": [
            {
                "rank": 1,
                "text": submitted_response(row, label.reply),
                "citations": {
                    passage_id: score for passage_id, score in references.items() if passage_id in row["used"]
                },
                "ptkb_provenance": [fact["text"] for fact in _used_facts(row)],
            }
        ],
    }
