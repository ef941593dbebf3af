"""Prompts that are asked side by side share one batch, and everyone gets their own reply, or the batch's error."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from assistant.errors import ModelError
from assistant.experiment.batching import BatchingLLM
from assistant.types import Completion, Message, Messages, Options
from tests.scripted import ScriptedLLM

NEVER = Event()


class Echo(ScriptedLLM):
    """Says each prompt back, and keeps how large the batches were."""

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[int] = []

    def complete(self, batch: Sequence[Messages], options: Options, stop: Event) -> list[Completion]:
        self.batches.append(len(batch))
        return [Completion(f"{messages[-1].content} in {options.max_tokens}") for messages in batch]


class Failing(Echo):
    def complete(self, batch: Sequence[Messages], options: Options, stop: Event) -> list[Completion]:
        super().complete(batch, options, stop)
        raise ModelError("The memory is too small.")


def prompt(text: str) -> Messages:
    return (Message("user", text),)


def side_by_side(asks: Sequence[object]) -> list[object]:
    def settle(ask: object) -> object:
        try:
            return ask()  # type: ignore[operator]
        except ModelError as error:
            return str(error)

    with ThreadPoolExecutor(len(asks)) as pool:
        return list(pool.map(settle, asks))


def test_what_is_asked_at_the_same_time_is_one_batch_and_each_gets_its_own() -> None:
    llm = Echo()
    gatherer = BatchingLLM(llm)
    asks = [
        lambda n=n: [one.text for one in gatherer.complete([prompt(f"{n}a"), prompt(f"{n}b")], Options(8), NEVER)]
        for n in range(4)
    ]
    assert side_by_side(asks) == [[f"{n}a in 8", f"{n}b in 8"] for n in range(4)]
    assert sum(llm.batches) == 8
    assert len(llm.batches) < 4


def test_other_options_are_another_batch() -> None:
    llm = Echo()
    gatherer = BatchingLLM(llm)
    asks = [lambda n=n: gatherer.complete([prompt("x")], Options(n), NEVER)[0].text for n in (8, 9)]
    assert side_by_side(asks) == ["x in 8", "x in 9"]
    assert llm.batches == [1, 1]


def test_a_streamed_reply_comes_whole_and_shares_the_batch() -> None:
    llm = Echo()
    gatherer = BatchingLLM(llm)
    asks = [lambda n=n: [one.text for one in gatherer.stream(prompt(str(n)), Options(8), NEVER)] for n in range(3)]
    assert side_by_side(asks) == [[f"{n} in 8"] for n in range(3)]
    assert len(llm.batches) < 3


def test_an_error_is_everyones_who_was_in_the_batch_and_the_next_ask_is_not_held_up() -> None:
    llm = Failing()
    gatherer = BatchingLLM(llm)
    asks = [lambda n=n: gatherer.complete([prompt(str(n))], Options(8), NEVER) for n in range(3)]
    assert side_by_side(asks) == ["The memory is too small."] * 3
    with pytest.raises(ModelError, match="too small"):
        gatherer.complete([prompt("again")], Options(8), NEVER)
