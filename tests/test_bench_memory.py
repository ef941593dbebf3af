"""`bench memory`: what the process holds after so many turns; and that what was freed is given back."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from threading import Event
from typing import Any

import psutil
import pytest
from typer.testing import CliRunner

from assistant import runs
from assistant.commands.turn_options import TurnOptions
from assistant.errors import ModelError, SequiturError
from assistant.protocols import Parts
from assistant.settings import Settings
from assistant.types import Completion, Messages, Options, Turn
from benchmarks import memory
from benchmarks.memory import questions
from tests.scripted import ScriptedLLM
from tests.sources import Given

ROOT = Path(__file__).parents[1]


class Talker(ScriptedLLM):
    """Never runs out of replies."""

    def _next(self, messages: Messages) -> str:
        return "Lentils are rich in protein."


class Slow(Talker):
    """Takes three seconds for each reply, unless it is stopped."""

    def stream(self, messages: Messages, options: Options, stop: Event) -> Iterator[Completion]:
        stop.wait(3)
        yield from super().stream(messages, options, stop)


class Broken(Talker):
    """Fails."""

    def stream(self, messages: Messages, options: Options, stop: Event) -> Iterator[Completion]:
        raise ModelError("The model ran out of memory.")


def asked(parts: Parts, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> str:
    monkeypatch.setattr(memory, "load_with_bars", lambda _: Given(parts))
    from assistant.__main__ import app

    result = CliRunner().invoke(app, ["bench", "memory", *arguments], catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout


def test_what_is_held_is_told_after_each_number_of_turns(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    llm = Talker()
    said = asked(replace(parts, llm=llm), monkeypatch, "--turns", "12", "--turns", "3", "--json")
    found = json.loads(said)
    assert found["model"] == "scripted"
    assert list(found["held_gb"]) == ["3", "12"]
    me = psutil.Process()  # other tests of this process may have engines of their own at work
    now = sum(process.memory_info().rss for process in (me, *me.children(recursive=True))) / 1e9
    assert all(now / 2 < gb < now * 2 for gb in found["held_gb"].values())
    assert found["growth"] == pytest.approx(found["held_gb"]["12"] / found["held_gb"]["3"] - 1)
    assert len({prompt[-1].content for prompt in llm.prompts}) >= 12


def test_a_turn_that_fails_ends_the_measurement(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SequiturError, match=r"The model ran out of memory\."):
        asked(replace(parts, llm=Broken()), monkeypatch, "--turns", "1")


def test_a_turn_that_takes_long_is_not_stopped(parts: Parts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "MAX_UNWATCHED_SECONDS", 0.3)
    monkeypatch.setattr(memory, "GLANCE", 0.05)
    seen: list[Turn] = []
    given: Any = Given(replace(parts, llm=Slow()))
    memory.memory_after_turns(
        [1], given, TurnOptions().choices(Settings()), tmp_path, lambda _, turn: seen.append(turn)
    )
    assert [turn.status for turn in seen] == ["done"]


def test_no_two_questions_are_alike() -> None:
    some = list(islice(questions(), 400))
    assert len(set(some)) == 400


GIVING_BACK = """
import threading, psutil
from assistant.llm.memory_trim import trim_memory
held = lambda: psutil.Process().memory_info().rss
before = held()
def work():
    blocks = [bytearray(100_000) for _ in range(2_000)]
    last = blocks[-1:]
    del blocks
    keep.append(last)  # what lies on top keeps the allocator from giving back what lies below
keep = []
for _ in range(4):
    thread = threading.Thread(target=work); thread.start(); thread.join()
kept = held() - before
trim_memory()
print(kept, held() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's allocator is meant")
def test_what_was_freed_is_given_back() -> None:
    done = subprocess.run(
        [sys.executable, "-c", GIVING_BACK], cwd=ROOT, capture_output=True, text=True, timeout=120, check=True
    )
    kept, left = map(int, done.stdout.split())
    assert kept > 100_000_000
    assert left < kept / 10
