"""Topics of TREC iKAT: the forms of all three years, broken ones, and the track's own files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from assistant.errors import DataError
from assistant.ikat.topics import read_topics

IKAT = Path(__file__).parents[2] / "shared" / "data" / "ikat"


def topics_of(year: int) -> list[dict[str, Any]]:
    """Two conversations about diets in the form of `year`; the first has two turns."""
    texts = ["I'm vegetarian.", "I live in Oslo."]
    turns = [
        ("Which diet suits me?", "Which diet suits me, a vegetarian?", "The DASH diet does.", [0], ["clueweb22-a:1"]),
        ("Is it healthy?", "Is the DASH diet healthy?", "Yes, it is.", [], []),
    ]
    names = ("user_utterance", "relevant_ptkbs", "citations", "responses")
    if year != 2025:
        names = ("utterance", "ptkb_provenance", "response_provenance", "turns")
    said, facts, passages, listed = names
    written = [
        {
            "turn_id": n,
            said: utterance,
            "resolved_utterance": resolved,
            "response": response,
            facts: [texts[at] if year == 2025 else at + 1 for at in relevant],
            passages: found,
        }
        for n, (utterance, resolved, response, relevant, found) in enumerate(turns, 1)
    ]
    ptkb: Any = texts if year == 2025 else {str(n): text for n, text in enumerate(texts, 1)}
    numbers = [0, 1] if year == 2024 else ["9-1", "9-2"]
    return [
        {"number": number, "title": "Diets", "ptkb": ptkb, listed: written[: 2 - n]} for n, number in enumerate(numbers)
    ]


def write(folder: Path, topics: Any) -> Path:
    path = folder / "topics.json"
    path.write_text(json.dumps(topics), encoding="utf-8")
    return path


@pytest.mark.parametrize("year", [2023, 2024, 2025])
def test_every_year_is_read_alike(tmp_path: Path, year: int) -> None:
    read = read_topics(write(tmp_path, topics_of(year)))
    first = "0" if year == 2024 else "9-1"
    assert read.year == year
    assert list(read.turns) == [f"{first}_1", f"{first}_2", "1_1" if year == 2024 else "9-2_1"]
    topic, turn = read.turns[f"{first}_1"]
    assert [(fact.id, fact.text) for fact in topic.facts] == [("1", "I'm vegetarian."), ("2", "I live in Oslo.")]
    assert turn.utterance == "Which diet suits me?"
    assert turn.resolved == "Which diet suits me, a vegetarian?"
    assert turn.response == "The DASH diet does."
    assert turn.relevant == ("1",)
    assert turn.passages == ("clueweb22-a:1",)


def test_the_names_of_the_2025_guidelines_are_read_too(tmp_path: Path) -> None:
    [topic, _] = topics_of(2025)
    topic["conv_id"] = topic.pop("number")
    for turn in topic["responses"]:
        turn["ptkb_provenance"] = turn.pop("relevant_ptkbs")
    topic["responses"][1]["ptkb_provenance"] = ["I'm vegetarian.", "Told in another conversation."]
    read = read_topics(write(tmp_path, [topic]))
    assert [turn.relevant for _, turn in read.turns.values()] == [("1",), ("1",)]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda topic: topic.pop("turns"), r"topics\.json, topic 1, has no number or no turns"),
        (lambda topic: topic.update(turns=[]), "topic 1, has no number or no turns"),
        (lambda topic: topic.pop("number"), "topic 1, has no number"),
        (lambda topic: topic.pop("ptkb"), "topic 9-1, has no ptkb"),
        (lambda topic: topic["ptkb"].update({"2": " "}), "topic 9-1, has no text for fact 2"),
        (lambda topic: topic["turns"][1].pop("turn_id"), "topic 9-1, turn 2, has no turn_id"),
        (lambda topic: topic["turns"][1].pop("utterance"), "topic 9-1, turn 2, has no utterance"),
        (lambda topic: topic["turns"][1].update(response=7), "topic 9-1, turn 2, has a response that is not text"),
        (lambda topic: topic["turns"][0].update(ptkb_provenance=[1, 9]), "turn 1, names the facts 9"),
        (lambda topic: topic["turns"][0].update(ptkb_provenance=["one"]), "turn 1, names the facts one"),
        (lambda topic: topic["turns"][0].update(response_provenance="x"), "response_provenance that is not a list"),
        (lambda topic: topic["turns"][1].update(turn_id=1), "has the turn '9-1_1' twice"),
        (lambda topic: topic["turns"].insert(0, "turn"), "topic 9-1, turn 1, has no turn_id"),
    ],
)
def test_what_is_broken_is_named_with_its_place(tmp_path: Path, change: Any, says: str) -> None:
    broken = topics_of(2023)
    change(broken[0])
    with pytest.raises(DataError, match=says):
        read_topics(write(tmp_path, broken))


def test_topics_that_are_nested_too_deeply_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "topics.json"
    path.write_text("[" * 100_000)
    with pytest.raises(DataError, match="are not valid JSON"):
        read_topics(path)


def test_numbers_that_no_fact_has_are_refused_in_2025_as_well(tmp_path: Path) -> None:
    topics = topics_of(2025)
    topics[0]["responses"][0]["relevant_ptkbs"] = ["3"]
    with pytest.raises(DataError, match="names the facts 3"):
        read_topics(write(tmp_path, topics))


@pytest.mark.parametrize(("name", "topics", "turns"), [("2023_train_topics", 11, 95), ("2023_test_topics", 25, 332)])
def test_the_tracks_own_files(name: str, topics: int, turns: int) -> None:
    path = IKAT / f"{name}.json"
    if not path.exists():
        pytest.skip("the topics of TREC iKAT are not here")
    read = read_topics(path)
    assert (read.year, len(read.topics), len(read.turns)) == (2023, topics, turns)
