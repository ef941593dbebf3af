"""Passages left out of a turn as unreliable: by a small classifier that is learned here, through the real flow."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from threading import Event

import numpy as np
import pytest

from assistant import turn as flow
from assistant.errors import DataError
from assistant.ikat.play import Plan, open_run, ranking
from assistant.judges.quality import LABELS, Classifier, fit
from assistant.protocols import Parts
from assistant.steps import quality
from assistant.types import Choices, DroppedPassage, Passage, Query, Turn, TurnEvent
from assistant.web import render
from assistant.wording.views import as_json, headline
from tests.scripted import FixedRetriever, ScriptedLLM

MANNERS = {
    "reliable": "The lentil is a legume grown in the region for its protein.",
    "unreliable": "I honestly think lentils are kind of awful, just my opinion.",
    "junk": "Click here for free lentils, limited offer, act now!",
}
GOOD, CHAT, SPAM = (Passage(label, f"The {label} page", text) for label, text in MANNERS.items())
SAID = "A lentil is a legume."
ASKED = Turn("What is a lentil?", choices=Choices(strategy="concat"))


def trained(folder: Path) -> Path:
    """The file of a classifier that knows the three manners."""
    path = folder / "quality.npz"
    texts = [(f"{MANNERS[label]} Number {n}.", label) for label in LABELS for n in range(6)]
    fit([text for text, _ in texts], [label for _, label in texts]).save(path)
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A classifier that no other test has read: what was read is kept by its path."""
    return trained(tmp_path)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files that were read for a classifier."""
    read, load = list[Path](), Classifier.load

    def counted(path: Path) -> Classifier:
        read.append(path)
        return load(path)

    monkeypatch.setattr(Classifier, "load", counted)
    return read


def judging(parts: Parts, path: Path | str, *passages: Passage) -> Parts:
    turn = parts.settings.turn.model_copy(update={"quality_model": str(path)})
    settings = parts.settings.model_copy(update={"turn": turn})
    return replace(parts, settings=settings, llm=ScriptedLLM([SAID] * 9), retriever=FixedRetriever(list(passages)))


def asked(parts: Parts, turn: Turn = ASKED) -> Turn:
    *_, last = flow.run(turn, parts, Event())
    assert last.status == "done", last.error
    return last


def ids(turn: Turn) -> list[str]:
    return [passage.id for passage in turn.passages]


def test_what_is_not_reliable_is_left_out_before_it_is_read(parts: Parts, path: Path) -> None:
    parts = judging(parts, path, SPAM, GOOD, CHAT)
    turn = asked(parts)
    assert ids(turn) == [digest.passage_id for digest in turn.digests] == ["reliable"]
    assert [(one.passage.id, one.label) for one in turn.dropped] == [("junk", "junk"), ("unreliable", "unreliable")]
    assert all(1 / 3 < one.probability <= 1 for one in turn.dropped)
    assert turn.events == ()
    assert isinstance(parts.llm, ScriptedLLM)
    assert "grown in the region" in parts.llm.prompts[-1][-1].content
    assert "limited offer" not in parts.llm.prompts[-1][-1].content


def test_off_nothing_is_judged(parts: Parts, reads: list[Path]) -> None:
    turn = asked(judging(parts, "", SPAM, GOOD, CHAT))
    assert ids(turn) == ["junk", "reliable", "unreliable"]
    assert (turn.dropped, reads, "quality" in turn.timings) == ((), [], False)


def test_one_passage_always_stays(parts: Parts, path: Path) -> None:
    turn = asked(judging(parts, path, CHAT, SPAM))
    assert ids(turn) == ["unreliable"]
    assert [one.passage.id for one in turn.dropped] == ["junk"]
    assert turn.events == (TurnEvent("none_reliable"),)
    alone = asked(judging(parts, path, SPAM))
    assert (ids(alone), alone.dropped, alone.events) == (["junk"], (), (TurnEvent("none_reliable"),))


def test_the_places_of_those_left_out_go_to_the_ones_ranked_next(parts: Parts, path: Path) -> None:
    more = [replace(GOOD, id=f"good {n}") for n in range(3)]
    turn = replace(ASKED, choices=replace(ASKED.choices, k=3))
    found = asked(judging(parts, path, SPAM, more[0], CHAT, more[1], more[2], replace(SPAM, id="below")), turn)
    assert ids(found) == [digest.passage_id for digest in found.digests] == ["good 0", "good 1", "good 2"]
    assert [one.passage.id for one in found.dropped] == ["junk", "unreliable"]
    assert all(passage.found_by == ("question", "draft") for passage in found.passages)


def test_the_reserve_comes_first_and_is_judged_as_well(parts: Parts, path: Path) -> None:
    best, next_, last = (replace(GOOD, id=one) for one in ("best", "next", "last"))
    turn = replace(ASKED, choices=replace(ASKED.choices, k=2), queries=(Query("question", "lentil"),))
    turn = replace(turn, passages=(SPAM, best), reserve=(CHAT, next_, last))
    [found] = quality.run(
        turn, judging(parts, path, replace(GOOD, id="found below"), replace(SPAM, id="lower")), Event()
    )
    assert ids(found) == ["best", "next"]
    assert found.reserve == (last,)
    assert [one.passage for one in found.dropped] == [SPAM, CHAT]


def test_no_more_than_the_depth_is_looked_at(parts: Parts, path: Path) -> None:
    parts = judging(parts, path, SPAM, CHAT, GOOD)
    shallow = parts.settings.retrieve.model_copy(update={"fusion_depth": 2})
    parts = replace(parts, settings=parts.settings.model_copy(update={"retrieve": shallow}))
    found = asked(parts, replace(ASKED, choices=replace(ASKED.choices, k=1)))
    assert (ids(found), found.events) == (["junk"], (TurnEvent("none_reliable"),))


def test_nothing_found_is_no_event(parts: Parts, path: Path) -> None:
    turn = asked(judging(parts, path), replace(ASKED, choices=replace(ASKED.choices, below="refuse")))
    assert (turn.passages, turn.dropped, turn.events) == ((), (), ())


def test_a_further_loop_writes_from_what_is_reliable(parts: Parts, path: Path) -> None:
    parts = judging(parts, path, SPAM, GOOD)
    turn = asked(parts, replace(ASKED, choices=replace(ASKED.choices, loop="grg", loops=2)))
    assert isinstance(parts.llm, ScriptedLLM)
    second = parts.llm.prompts[1][-1].content
    assert "grown in the region" in second
    assert "limited offer" not in second
    assert [one.passage.id for one in turn.dropped] == ["junk"]
    assert "junk" not in ids(turn)
    assert [digest.passage_id for digest in turn.digests] == ids(turn)
    worse = asked(judging(parts, path, SPAM, CHAT), replace(ASKED, choices=turn.choices))
    assert worse.events == (TurnEvent("none_reliable"),)


def test_the_classifier_is_read_once_and_again_when_it_was_trained_anew(
    parts: Parts, path: Path, reads: list[Path]
) -> None:
    parts = judging(parts, path, GOOD)
    asked(parts)
    asked(parts)
    assert reads == [path]
    later = path.stat().st_mtime_ns + 1_000_000_000
    os.utime(path, ns=(later, later))
    asked(parts)
    assert reads == [path, path]


@pytest.mark.parametrize("broken", ["missing", "cut off", "another version"])
def test_without_a_usable_classifier_the_turn_goes_on_and_says_so(
    parts: Parts, path: Path, reads: list[Path], tmp_path: Path, broken: str
) -> None:
    other = tmp_path / "other.npz"
    if broken == "cut off":
        other.write_bytes(path.read_bytes()[:-40])
    elif broken == "another version":
        np.savez(other, version=np.array(99))
    parts = judging(parts, other, SPAM, GOOD)
    for _ in range(2):
        turn = asked(parts)
        assert ids(turn) == ["junk", "reliable"]
        assert turn.dropped == ()
        [event] = turn.events
        assert event.code == "quality_failed"
        assert "train it with: python -m assistant train quality" in event.detail
    assert reads == [other]


def test_what_was_left_out_is_shown_stored_and_in_the_json(parts: Parts, path: Path) -> None:
    turn = asked(judging(parts, path, GOOD, CHAT))
    assert Turn.from_json(turn.to_json()) == turn
    [one] = as_json(turn)["dropped"]
    assert (one["label"], one["passage"]["text"]) == ("unreliable", CHAT.text)
    page = render.answering(
        "c", replace(turn, dropped=(DroppedPassage(CHAT, "unreliable", 0.934), DroppedPassage(SPAM, "junk", 0.5)))
    )
    assert 'Left out as unreliable: <span dir="auto">The unreliable page</span> (0.93)' in page
    assert 'Left out as junk: <span dir="auto">The junk page</span> (0.50)' in page
    assert "Left out as" not in render.answering("c", replace(turn, dropped=()))
    assert headline(replace(turn, status="running", step="quality")) == "Judging the passages"


def test_what_was_left_out_is_not_ranked_for_the_track(parts: Parts) -> None:
    parts = judging(parts, "", SPAM, GOOD, CHAT)
    turn = replace(
        ASKED, queries=(Query("question", "lentil"),), passages=(GOOD,), dropped=(DroppedPassage(SPAM, "junk", 1),)
    )
    assert [passage.id for passage in ranking(turn, parts, 10)] == ["reliable", "unreliable"]


def test_a_run_goes_on_with_its_own_classifier_only(path: Path, tmp_path: Path) -> None:
    topics, other = tmp_path / "topics.json", tmp_path / "other.npz"
    topics.write_text("[]")
    other.write_bytes(path.read_bytes() + b"another")
    plan = Plan(topics, "passages", ASKED.choices, quality=str(path))
    open_run(tmp_path / "run", plan, "m")
    open_run(tmp_path / "run", plan, "m")
    for quality_path in ("", str(other)):
        with pytest.raises(DataError, match="another quality"):
            open_run(tmp_path / "run", replace(plan, quality=quality_path), "m")
