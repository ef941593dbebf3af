"""What stands around a language model passes on what it doesn't change, whether the model can score texts or not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Event

import pytest

from assistant.errors import ModelError
from assistant.evaluation.few_shot import Demonstrator
from assistant.experiment.batching import BatchingLLM
from assistant.experiment.cache import CachedLLM
from assistant.experiment.datasets import Question
from assistant.llm.meter import Meter
from assistant.llm.repetition import RepetitionCutter
from assistant.llm.wrapper import Wrapper
from assistant.protocols import LLM
from assistant.strategies.shared.consistency import Sampler
from assistant.types import Message, Messages, Options
from tests.scripted import ScriptedLLM

PROMPT = (Message("system", "You answer."), Message("user", "capital of Peru?"))
SHOWN = (Question("1", "capital of Norway?", ("Oslo",)),)
WRAPPERS: dict[str, Callable[[LLM, Path], Wrapper]] = {
    "alone": lambda llm, _: Wrapper(llm),
    "meter": lambda llm, _: Meter(llm),
    "straight": lambda llm, _: RepetitionCutter(llm),
    "sampler": lambda llm, _: Sampler(llm, seed=1),
    "demonstrator": lambda llm, _: Demonstrator(llm, SHOWN),
    "memo": lambda llm, folder: CachedLLM(llm, folder / "replies.jsonl", "m"),
    "gatherer": lambda llm, _: BatchingLLM(llm),
}


class Scoring(ScriptedLLM):
    """Holds a text the likelier the shorter it is."""

    can_score = True

    def score(self, batch: Sequence[tuple[Messages, str]], stop: Event) -> list[float]:
        return [-float(len(text)) for _, text in batch]


@pytest.fixture(params=WRAPPERS.values(), ids=WRAPPERS)
def wrap(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[LLM], Wrapper]:
    return lambda llm: request.param(llm, tmp_path)


def test_it_is_the_model_to_those_who_ask(wrap: Callable[[LLM], Wrapper]) -> None:
    llm = ScriptedLLM(["Lima", "Lima"], [{"yes": 0.3, "no": 0.7}], name="small", context=512)
    wrapper = wrap(llm)
    assert (wrapper.name, wrapper.context) == ("small", 512)
    assert wrapper.count(PROMPT) >= llm.count(PROMPT)
    assert [one.text for one in wrapper.complete([PROMPT], Options(), Event())] == ["Lima"]
    assert list(wrapper.stream(PROMPT, Options(), Event()))[-1].text == "Lima"
    assert wrapper.choose([PROMPT], ("yes", "no"), Event())[0].probabilities == {"yes": 0.3, "no": 0.7}


def test_it_scores_where_the_model_does(wrap: Callable[[LLM], Wrapper]) -> None:
    wrapper = wrap(Scoring())
    assert wrapper.can_score
    assert wrapper.score([(PROMPT, "Lima"), (PROMPT, "Paris")], Event()) == [-4.0, -5.0]


def test_it_says_that_the_model_can_not_score(wrap: Callable[[LLM], Wrapper]) -> None:
    wrapper = wrap(ScriptedLLM())
    assert not wrapper.can_score
    with pytest.raises(ModelError, match="can't tell how likely"):
        wrapper.score([(PROMPT, "Lima")], Event())
