"""Replies that are kept: asked once, found again, and with the seconds that they took."""

from __future__ import annotations

import time
from pathlib import Path
from threading import Event

import pytest

from assistant.errors import DataError
from assistant.experiment.cache import CachedLLM
from assistant.types import Completion, Message, Messages, Options
from tests.scripted import ScriptedLLM


class Slow(ScriptedLLM):
    """Takes a moment for every call, and answers with what it was asked."""

    def _next(self, messages: Messages) -> str:
        time.sleep(0.02)
        return f"about {messages[-1].content}"


def prompt(text: str) -> Messages:
    return (Message("user", text),)


def last(memo: CachedLLM, text: str, stop: Event | None = None) -> Completion:
    return list(memo.stream(prompt(text), Options(8), stop or Event()))[-1]


def test_a_reply_is_asked_for_once_and_its_seconds_are_kept(tmp_path: Path) -> None:
    first = Slow()
    memo = CachedLLM(first, tmp_path / "replies.sqlite", "m")
    written = last(memo, "bread")
    assert memo.saved_seconds == 0
    again = Slow()
    reopened = CachedLLM(again, tmp_path / "replies.sqlite", "m")
    assert last(reopened, "bread") == written
    assert (len(first.prompts), len(again.prompts)) == (1, 0)
    assert 0.01 < reopened.saved_seconds < 5


def test_of_a_batch_only_what_is_missing_is_asked(tmp_path: Path) -> None:
    llm = Slow()
    memo = CachedLLM(llm, tmp_path / "replies.sqlite", "m")
    streamed = last(memo, "bread")
    batch = [prompt(text) for text in ("salt", "bread", "salt", "water")]
    replies = memo.complete(batch, Options(8), Event())
    assert [reply.text for reply in replies] == ["about salt", streamed.text, "about salt", "about water"]
    assert [messages[-1].content for messages in llm.prompts] == ["bread", "salt", "water"]
    assert memo.saved_seconds > 0


def test_other_options_are_another_question(tmp_path: Path) -> None:
    llm = Slow()
    memo = CachedLLM(llm, tmp_path / "replies.sqlite", "m")
    for options in (Options(8), Options(9), Options(8, temperature=0.7), Options(8, temperature=0.7, seed=1)):
        memo.complete([prompt("bread")], options, Event())
    assert len(llm.prompts) == 4


def test_choices_are_kept_apart_from_completions(tmp_path: Path) -> None:
    memo = CachedLLM(Slow(), tmp_path / "replies.sqlite", "m")
    memo.complete([prompt("bread")], Options(8), Event())
    (choice,) = memo.choose([prompt("bread")], ("yes", "no"), Event())
    (again,) = CachedLLM(ScriptedLLM(), tmp_path / "replies.sqlite", "m").choose(
        [prompt("bread")], ("yes", "no"), Event()
    )
    assert again == choice
    assert sum(choice.probabilities.values()) == pytest.approx(1)


def test_a_stopped_reply_is_not_kept(tmp_path: Path) -> None:
    stop = Event()
    memo = CachedLLM(Slow(), tmp_path / "replies.sqlite", "m")
    stop.set()
    last(memo, "bread", stop)
    memo.complete([prompt("salt")], Options(8), stop)
    assert memo.choose([prompt("salt")], ("yes", "no"), stop)[0].probabilities == {"yes": 0.5, "no": 0.5}
    llm = Slow()
    last(CachedLLM(llm, tmp_path / "replies.sqlite", "m"), "bread")
    assert len(llm.prompts) == 1


@pytest.mark.parametrize("text", ["not a database\n", '{"model": "m"}\n'])
def test_a_file_of_something_else_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "replies.sqlite").write_text(text)
    with pytest.raises(DataError, match="can't be used"):
        CachedLLM(Slow(), tmp_path / "replies.sqlite", "m")


def test_replies_of_another_model_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "replies.sqlite"
    CachedLLM(Slow(), file, "small").complete([prompt("bread")], Options(), Event())
    with pytest.raises(DataError, match="holds replies of small, not of large; choose another file"):
        CachedLLM(Slow(), file, "large")
    assert CachedLLM(ScriptedLLM(), file, "small").complete([prompt("bread")], Options(), Event())[0].text


class Scoring(Slow):
    """Can also tell how likely a text is."""

    can_score = True

    def score(self, batch, stop) -> list[float]:
        self.asked.extend(messages for messages, _ in batch)
        return [-float("inf") if text == "never" else -float(len(text)) for _, text in batch]


def test_scores_are_kept_where_the_model_scores(tmp_path: Path) -> None:
    batch = [(prompt("bread"), "rye"), (prompt("bread"), "never"), (prompt("salt"), "rye")]
    llm, again = Scoring(), Scoring()
    memo = CachedLLM(llm, tmp_path / "replies.sqlite", "m")
    assert memo.score(batch[:2], Event()) == [-3.0, -float("inf")]
    reopened = CachedLLM(again, tmp_path / "replies.sqlite", "m")
    assert reopened.score(batch, Event()) == [-3.0, -float("inf"), -3.0]
    assert (len(llm.asked), len(again.asked)) == (2, 1)
