"""A run of TREC iKAT: played with scripted parts through the real flow, interrupted, written, and its bad input."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from assistant import turn as flow
from assistant.errors import DataError, LibraryError
from assistant.ikat import play as playing
from assistant.ikat.play import Plan, open_run, play, ranking, row_of, turn_of, without_small_talk
from assistant.ikat.runs import (
    MAX_RESPONSE_WORDS,
    RunLabel,
    submitted_response,
    trec_lines,
    truncated,
    word_count,
    write_run,
)
from assistant.ikat.topics import Topics, read_topics
from assistant.ikat.validate import validate
from assistant.protocols import Parts, silent
from assistant.settings import TurnSettings
from assistant.types import Choices, Passage, RankedFact, Turn
from tests.scripted import FixedRetriever, ScriptedLLM
from tests.test_ikat_topics import topics_of, write

DASH = "The DASH diet is rich in vegetables and low in salt."
PASSAGES = [Passage(f"clueweb22-en0000-00-0000{n}:{n}", "", f"{DASH} It is number {n}.") for n in range(6)]
LOOP = Choices(loop="retrieve_then_generate", strategy="concat", k=2)


def scripted(parts: Parts, replies: int = 12) -> Parts:
    """Parts whose model always says the same of the DASH diet."""
    return replace(parts, llm=ScriptedLLM([DASH] * replies), retriever=FixedRetriever(PASSAGES))


def plan_of(path: Path, **changes: Any) -> Plan:
    return Plan(path, "a test's passages", LOOP, **changes)


@pytest.fixture
def played(parts: Parts, tmp_path: Path) -> Callable[[int], tuple[Topics, dict[str, Any]]]:
    def played(year: int, **changes: Any) -> tuple[Topics, dict[str, Any]]:
        path = write(tmp_path, topics_of(year))
        topics, plan = read_topics(path), plan_of(path, **changes)
        run = open_run(tmp_path / "out", plan, "scripted")
        play(topics, plan, run, scripted(parts), silent)
        return topics, run.rows

    return played


def test_a_turn_is_given_the_canonical_conversation_and_the_users_facts(tmp_path: Path) -> None:
    path = write(tmp_path, topics_of(2023))
    topic, second = read_topics(path).turns["9-1_2"]
    turn = turn_of(topic, second, plan_of(path))
    assert turn.utterance == "Is it healthy?"
    assert [(one.utterance, one.question, one.reply) for one in turn.history] == [
        ("Which diet suits me?", "Which diet suits me?", "The DASH diet does.")
    ]
    assert [fact.text for fact in turn.known] == ["I'm vegetarian.", "I live in Oslo."]
    by_hand = turn_of(topic, second, plan_of(path, kind="manual"))
    assert by_hand.utterance == "Is the DASH diet healthy?"
    assert by_hand.history[0].question == "Which diet suits me, a vegetarian?"


def test_every_turn_is_played_once_and_kept(played, tmp_path: Path) -> None:
    _, rows = played(2023)
    assert list(rows) == ["9-1_1", "9-1_2", "9-2_1"]
    row = rows["9-1_1"]
    assert row["text"].startswith(f"{DASH} [1]")
    assert row["response"] == DASH
    assert row["ranking"] == [passage.id for passage in PASSAGES]
    assert list(row["used"]) == row["ranking"][:2]
    assert row["cited"][0] in row["used"]
    assert [fact["id"] for fact in row["facts"]] == ["1", "2"]
    assert row["digests"].startswith(DASH)
    assert len((tmp_path / "out" / "rows.jsonl").read_text().splitlines()) == 3


def test_no_turn_passes_for_small_talk(parts: Parts, tmp_path: Path) -> None:
    topics = topics_of(2023)[1:]
    topics[0]["turns"][0]["utterance"] = "Thank you!"
    path = write(tmp_path, topics)
    turn = turn_of(*read_topics(path).turns["9-2_1"], plan_of(path))
    eager = scripted(parts)
    eager = replace(
        eager,
        settings=eager.settings.model_copy(update={"turn": TurnSettings(intent_threshold=0, writing_threshold=0)}),
    )
    *_, chatted = flow.run(turn, eager, Event())
    assert chatted.intent != "question"
    *_, played = flow.run(turn, without_small_talk(eager), Event())
    assert played.intent == "question"
    assert played.passages


def test_a_run_that_was_interrupted_goes_on_where_it_was(parts: Parts, tmp_path: Path) -> None:
    path = write(tmp_path, topics_of(2023))
    topics, plan = read_topics(path), plan_of(path)
    whole = open_run(tmp_path / "whole", plan, "scripted")
    play(topics, plan, whole, scripted(parts), silent)
    for turns in range(3):
        folder = tmp_path / f"after {turns}"

        def interrupt(done: int, total: int, turns: int = turns) -> None:
            if done == turns:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            play(topics, plan, open_run(folder, plan, "scripted"), scripted(parts), interrupt)
        with (folder / "rows.jsonl").open("a") as file:
            file.write('{"id": "9-1_')  # a line that was being written when the process died
        rest = scripted(parts)
        run = open_run(folder, plan, "scripted")
        play(topics, plan, run, rest, silent)
        untimed = [{**row, "seconds": 0} for row in run.rows.values()]
        assert untimed == [{**row, "seconds": 0} for row in whole.rows.values()]
        assert len((folder / "rows.jsonl").read_text().splitlines()) == 3
        assert len({prompt[-1].content for prompt in rest.llm.prompts}) <= 2 * (3 - turns)


def test_a_folder_of_another_run_is_refused(parts: Parts, tmp_path: Path) -> None:
    path = write(tmp_path, topics_of(2023))
    open_run(tmp_path / "out", plan_of(path), "scripted")
    with pytest.raises(DataError, match="another loops"):
        open_run(tmp_path / "out", replace(plan_of(path), choices=replace(LOOP, loops=2)), "scripted")
    with pytest.raises(DataError, match="another model"):
        open_run(tmp_path / "out", plan_of(path), "other")


def test_a_turn_that_fails_is_named_and_nothing_is_lost(parts: Parts, tmp_path: Path) -> None:
    class Lost(FixedRetriever):
        def search(self, query: str, k: int) -> list[Passage]:
            if "healthy" in query:
                raise LibraryError("There is no complete index in here; make it again.")
            return super().search(query, k)

    path = write(tmp_path, topics_of(2023))
    topics, plan = read_topics(path), plan_of(path)
    run = open_run(tmp_path / "out", plan, "scripted")
    with pytest.raises(DataError, match=r"topics\.json, turn 9-1_2: There is no complete index"):
        play(topics, plan, run, replace(scripted(parts), retriever=Lost(PASSAGES)), silent)
    again = open_run(tmp_path / "out", plan, "scripted")
    assert list(again.rows) == ["9-1_1"]
    play(topics, plan, again, scripted(parts), silent)
    assert list(again.rows) == ["9-1_1", "9-1_2", "9-2_1"]


def test_an_utterance_that_is_too_long_is_named(parts: Parts, tmp_path: Path) -> None:
    broken = topics_of(2023)
    broken[0]["turns"][0]["utterance"] = "Why? " * 5000
    path = write(tmp_path, broken)
    with pytest.raises(DataError, match=r"turn 9-1_1: The message has 24,999 characters"):
        play(read_topics(path), plan_of(path), open_run(tmp_path / "o", plan_of(path), ""), scripted(parts), silent)


def test_only_the_topics_own_facts_are_among_those_of_a_run() -> None:
    facts = (RankedFact("3", "I run.", 0.5, used=True), RankedFact("s", "I sing.", 0.6, used=True, stored=False))
    assert [one["id"] for one in row_of(Turn("?", facts=facts), [])["facts"]] == ["3"]


def test_what_the_answer_was_made_from_leads_the_ranking(parts: Parts) -> None:
    turn = Turn("Is it?", passages=(PASSAGES[4], PASSAGES[1]))
    found = ranking(turn, scripted(parts), depth=4)
    assert [passage.id[-1] for passage in found] == ["4", "1", "0", "2"]
    searched = scripted(parts)
    assert len(ranking(Turn("Thank you!"), searched, depth=3)) == 3
    assert searched.retriever.queries == ["Thank you!"]


@pytest.mark.parametrize("year", [2023, 2024, 2025])
def test_what_is_written_passes_the_tracks_rules(played, tmp_path: Path, year: int) -> None:
    topics, rows = played(year)
    run, trec = write_run(topics, rows, RunLabel("grg1"), tmp_path)
    assert [str(one) for one in validate(run, topics)] == []
    assert [str(one) for one in validate(trec, topics)] == []
    first, *_, last = trec.read_text().splitlines()
    turns = list(topics.turns)
    assert first == f"{turns[0]} Q0 {PASSAGES[0].id} 1 1.0 grg1"
    assert last == f"{turns[-1]} Q0 {PASSAGES[5].id} 6 0.16666667 grg1"


def test_each_year_has_its_own_form(played, tmp_path: Path) -> None:
    topics, rows = played(2023)
    run = json.loads(write_run(topics, rows, RunLabel("grg1"), tmp_path)[0].read_text())
    [first] = run["turns"][0]["responses"]
    assert (run["run_name"], run["run_type"], "eval_response" in run) == ("grg1", "automatic", False)
    assert first["text"] == DASH
    assert [(one["id"], one["text"]) for one in first["ptkb_provenance"]] == [
        ("1", "I'm vegetarian."),
        ("2", "I live in Oslo."),
    ]
    assert [one["used"] for one in first["passage_provenance"]] == [True, True, False, False, False, False]
    assert first["passage_provenance"][0]["text"] == PASSAGES[0].text


def test_2024_lists_numbers_and_2025_texts(parts: Parts, tmp_path: Path) -> None:
    row = {
        "id": "0_1",
        "response": DASH,
        "digests": "Vegetables.",
        "ranking": ["a", "b"],
        "used": {"a": DASH},
        "facts": [
            {"id": "2", "text": "I live in Oslo.", "score": 0.5, "used": True},
            {"id": "1", "text": "I'm vegetarian.", "score": 0.1, "used": False},
        ],
    }
    for year, turn in ((2024, "0_1"), (2025, "9-1_1")):
        topics = read_topics(write(tmp_path, topics_of(year)))
        rows = {one: {**row, "id": one} for one in topics.turns}
        text = write_run(topics, rows, RunLabel("r", team="us", reply="digests"), tmp_path)[0].read_text()
        if year == 2024:
            run = json.loads(text)
            [reply] = run["turns"][0]["responses"]
            assert run["eval_response"] is True
            assert reply["ptkb_provenance"] == [2]
        else:
            line = json.loads(text.splitlines()[0])
            [reply] = line["responses"]
            assert line["turn_id"] == line["metadata"]["topic_id"] == turn
            assert line["metadata"]["team_id"] == "us"
            assert line["references"] == {"a": 1.0, "b": 0.5}
            assert reply["citations"] == {"a": 1.0}
            assert reply["ptkb_provenance"] == ["I live in Oslo."]
        assert reply["text"] == "Vegetables."


def test_a_run_with_turns_left_is_not_written(played, tmp_path: Path) -> None:
    topics, rows = played(2023)
    del rows["9-1_2"]
    with pytest.raises(DataError, match=r"1 turns of topics.json were not played yet, first '9-1_2'"):
        write_run(topics, rows, RunLabel("r"), tmp_path)


@pytest.mark.parametrize("name", ["", "my run", " run"])
def test_a_name_must_fit_into_a_column(name: str) -> None:
    with pytest.raises(DataError, match="can't name a run"):
        RunLabel(name)


@pytest.mark.parametrize("name", ["run", "rows", "Run", "a/b", "../grg1", "a\\b"])
def test_a_name_must_leave_the_runs_own_files_alone(name: str) -> None:
    with pytest.raises(DataError, match=r"choose another name|leave out the slash"):
        RunLabel(name)


def test_a_team_must_be_one_word_where_the_run_holds_it() -> None:
    label = RunLabel("grg1", team="our team")
    label.check(2023)
    label.check(2024)
    with pytest.raises(DataError, match="'our team' can't name the team of a run of 2025; use one word for --team"):
        label.check(2025)


def test_responses_are_cut_at_a_sentence_to_the_words_that_are_read() -> None:
    long = " ".join(f"Sentence {n} has six words." for n in range(100))
    cut = submitted_response({"response": long, "digests": ""}, "digests")
    assert word_count(cut) <= MAX_RESPONSE_WORDS < word_count(cut) + 6
    assert cut.endswith("words.")
    assert truncated("one two three four", 3) == "one two three"
    assert truncated("Short.", 3) == "Short."
    assert word_count(truncated("word " * 120 + "… " * 50 + "end.", MAX_RESPONSE_WORDS)) == MAX_RESPONSE_WORDS


def test_scores_fall_all_the_way_down() -> None:
    lines = trec_lines({"id": "1_1", "ranking": [f"p{n}" for n in range(playing.MAX_DEPTH)]}, "r").splitlines()
    scores = [float(line.split()[4]) for line in lines]
    assert len(set(scores)) == playing.MAX_DEPTH
    assert scores == sorted(scores, reverse=True)
