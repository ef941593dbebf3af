"""What a running turn waits for is told in its snapshots, is never taken for an answer, and is never stored."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from threading import Event

import pytest

from assistant import turn as flow
from assistant.library.arrivals import Arrivals
from assistant.llm.meter import Meter
from assistant.protocols import Parts
from assistant.settings import TurnSettings
from assistant.types import Answer, Choices, Exchange, Options, Tokens, Turn, Wait
from assistant.wording.views import as_json, wait_progress
from tests.scripted import Reader, ScriptedLLM

WHICH = "Which drink holds no lactose?"
DRAFT, OAT = "It is oat drink.", "Oat drink holds no lactose."
ASKED = Exchange(WHICH, WHICH, OAT)
TURNS: dict[str, tuple[Turn, tuple[str, ...]]] = {
    "question": (Turn(WHICH), (DRAFT, OAT)),
    "fallback": (Turn(WHICH), (DRAFT, "unknown", "unknown", OAT, "unknown", DRAFT)),
    "in rounds": (Turn(WHICH, choices=Choices("document", "itrg_refine", k=2)), (OAT, OAT)),
    "reasoned": (Turn(WHICH, choices=Choices("pruning")), (DRAFT, f"Two are of milk.\nAnswer: {OAT}")),
    "reasoned at length": (Turn(WHICH, choices=Choices("pruning")), (DRAFT, "Two are of milk.", OAT)),
    "small talk": (Turn("Hello!"), ("Hello! I am well.",)),
    "own knowledge": (Turn(WHICH), ("It is oat", *["unknown"] * 4, "Oat drink, I believe.")),
    "writing": (Turn("Write a poem about lentils.", (ASKED,)), ("Roses are red.\nLentils are brown.",)),
}


def run(parts: Parts, turn: Turn, llm: ScriptedLLM) -> list[Turn]:
    settings = parts.settings
    if "poem" in turn.utterance:
        knobs = TurnSettings(intent_threshold=0.85, writing_threshold=0.0)
        settings = settings.model_copy(update={"turn": knobs})
    return list(flow.run(turn, replace(parts, llm=llm, settings=settings), Event()))


def made(turn: Turn) -> dict[str, object]:
    return {name: value for name, value in as_json(turn).items() if name != "timings"}


@pytest.mark.parametrize("name", TURNS)
def test_a_turn_is_the_same_whether_its_engine_tells_how_far_it_reads_or_not(parts: Parts, name: str) -> None:
    turn, replies = TURNS[name]
    silently, telling = (run(parts, turn, made_of(list(replies))) for made_of in (ScriptedLLM, Reader))
    assert made(telling[-1]) == made(silently[-1])
    assert silently[-1].answer
    assert not any(one.wait for one in silently)
    told = [(before, one) for before, one in pairwise(telling) if one.wait]
    assert {one.wait for _, one in told} == {Wait("prompt", "", 4, 10), Wait("prompt", "", 10, 10)}
    for before, one in told:
        assert (one.answer, one.draft, one.iterations) == (before.answer, before.draft, before.iterations)
    assert telling[-1].wait is None


def test_what_is_waited_for_is_not_stored() -> None:
    turn = Turn("Hi", wait=Wait("prompt", "", 4, 10))
    assert Turn.from_json(turn.to_json()).wait is None
    assert "wait" not in turn.to_json()


def test_a_prompt_that_was_not_read_to_the_end_is_not_counted(parts: Parts) -> None:
    meter = Meter(Reader(["one two"]))
    stream = meter.stream((), Options(), Event())
    assert next(stream).read == 4
    stream.close()  # type: ignore[attr-defined]
    assert meter.tokens == Tokens()


@pytest.mark.parametrize(
    ("wait", "line"),
    [
        (Wait("prompt", "", 640, 1216), "reads 640 of 1,216 tokens"),
        (Wait("loading", "Language model", 42, 100), "Language model, 42 %"),
        (Wait("loading", "Language model"), "Language model"),
        (Wait("loading"), ""),
        (Wait("documents", "", 7, 100), "your documents, 7 %"),
        (Wait("documents"), "your documents"),
        (None, ""),
    ],
)
def test_the_line_says_how_far_it_is(wait: Wait | None, line: str) -> None:
    turn = Turn("Hi", step="load", wait=wait, answer=Answer("Hello"))
    assert wait_progress(turn) == line
    assert wait_progress(replace(turn, status="done")) == ""


class TestArrivals:
    def test_uploads_of_one_user_are_summed_and_nobody_elses_count(self) -> None:
        arrivals = Arrivals()
        with (
            arrivals.track("ann") as first,
            arrivals.track("ann") as second,
            arrivals.track("bob"),
        ):
            assert arrivals.wait("ann") == Wait("documents")
            first(30, 100)
            second(10, 100)
            assert arrivals.wait("ann") == Wait("documents", "", 20, 100)
            assert arrivals.wait("bob") == Wait("documents")
            assert arrivals.wait("eve") is None
        assert arrivals.wait("ann") is None

    def test_an_upload_that_fails_is_over(self) -> None:
        arrivals = Arrivals()

        def upload() -> None:
            with arrivals.track("ann") as tell:
                tell(1, 2)
                raise OSError("full")

        with pytest.raises(OSError, match="full"):
            upload()
        assert arrivals.wait("ann") is None
