"""The ranking of facts: scripted vectors for its rules, the real model for what it finds."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.typing import NDArray

from assistant.protocols import Embedder
from assistant.settings import FactSettings
from assistant.types import Exchange, Fact, Turn, now
from ptkb.rank import DECAY, LAST_REPLY_WEIGHT, MIN_TOPIC_SIMILARITY, VectorCache, rank

NEVER, ALWAYS = 1.0, -1.0


class Compass:
    """Texts as directions: "30" points 30 degrees away from "0". Counts what it is asked to encode."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.calls: list[list[str]] = []

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.calls.append(list(texts))
        angles = np.radians([float(text.split()[-1]) for text in texts])
        return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


@pytest.fixture
def compass(request: pytest.FixtureRequest) -> Compass:
    return Compass(request.node.name)


def facts(*texts: str, on: bool = True) -> list[Fact]:
    return [Fact(text, text, now(), now(), on=on) for text in texts]


def said(utterance: str, reply: str = "") -> Exchange:
    return Exchange(utterance, utterance, reply)


def test_facts_are_ranked_by_their_cosine_and_used_from_the_threshold_up(compass: Compass) -> None:
    ranked = rank(facts("80", "10", "50"), "0", (), compass, threshold=0.5, max_facts=5)
    assert [fact.text for fact in ranked] == ["10", "50", "80"]
    assert [fact.used for fact in ranked] == [True, True, False]
    assert [fact.relevance for fact in ranked] == pytest.approx(np.cos(np.radians([10, 50, 80])), abs=1e-5)


def test_no_more_than_the_most_are_used(compass: Compass) -> None:
    ranked = rank(facts("10", "20", "30"), "0", (), compass, ALWAYS, max_facts=2)
    assert [fact.used for fact in ranked] == [True, True, False]
    assert not any(fact.used for fact in rank(facts("10"), "0", (), compass, ALWAYS, max_facts=0))


def test_few_facts_are_all_told_and_many_are_ranked(compass: Compass) -> None:
    mine = [*facts("10", "170"), *facts("20", on=False)]
    assert [fact.told for fact in rank(mine, "0", (), compass, NEVER, 1, max_chars_to_tell_all=5)] == [True, True]
    few_and_none_used = rank(mine, "0", (), compass, NEVER, 1, max_chars_to_tell_all=4)
    assert [fact.told for fact in few_and_none_used] == [False, False]
    assert Turn("?", facts=few_and_none_used).told_facts == ()
    assert len(Turn("?", facts=rank(mine, "0", (), compass, NEVER, 1, max_chars_to_tell_all=5)).told_facts) == 2


def test_facts_that_are_off_are_left_out(compass: Compass) -> None:
    assert [fact.text for fact in rank([*facts("10", on=False), *facts("20")], "0", (), compass, ALWAYS, 5)] == ["20"]
    assert rank(facts("10", on=False), "0", (), compass, ALWAYS, 5) == ()
    assert rank([], "0", (), compass, ALWAYS, 5) == ()


def test_a_follow_up_keeps_the_facts_of_its_topic(compass: Compass) -> None:
    [fact] = rank(facts("80"), "0", (said("40", "70"),), compass, NEVER, 5)
    assert fact.relevance == pytest.approx(LAST_REPLY_WEIGHT * np.cos(np.radians(10)), abs=1e-5)
    [fact] = rank(facts("80"), "0", (said("40"),), compass, NEVER, 5)
    assert fact.relevance == pytest.approx(LAST_REPLY_WEIGHT * np.cos(np.radians(40)), abs=1e-5)


def test_what_was_said_earlier_counts_less_and_less(compass: Compass) -> None:
    [fact] = rank(facts("80"), "0", (said("80"), said("0 0")), compass, NEVER, 5)
    assert fact.relevance == pytest.approx(DECAY**2, abs=1e-5)


@pytest.mark.parametrize("opening", ["What about", "and how about", "Ok, what about"])
def test_what_about_something_else_keeps_the_facts_of_the_question_before(compass: Compass, opening: str) -> None:
    [fact] = rank(facts("95"), f"{opening} 0", (said("95", "120"),), compass, NEVER, 5)
    assert fact.relevance == pytest.approx(1, abs=1e-5)
    [fact] = rank(facts("80"), f"{opening} 0", (said("80 80"), said("0 0")), compass, NEVER, 5)
    assert fact.relevance == pytest.approx(DECAY, abs=1e-5)


def test_another_topic_is_no_context(compass: Compass) -> None:
    assert np.cos(np.radians(89)) < MIN_TOPIC_SIMILARITY
    [fact] = rank(facts("89"), "0", (said("89", "89 89"),), compass, NEVER, 5)
    assert fact.relevance == pytest.approx(np.cos(np.radians(89)), abs=1e-5)


def test_a_turn_costs_one_call_and_encodes_only_what_is_new(compass: Compass) -> None:
    known = facts(*(str(n) for n in range(50)))
    rank(known, "60", (), compass, NEVER, 5)
    rank(known, "61", (said("60", "62"),), compass, NEVER, 5)
    assert len(compass.calls) == 2
    assert compass.calls[1] == ["61", "62"]


def test_the_cache_is_bounded_and_keeps_models_apart() -> None:
    cache, one, other = VectorCache(max_texts=3), Compass("one"), Compass("other")
    cache.encode(["1", "2", "3", "4"], one)
    cache.encode(["4"], other)
    cache.encode(["4", "1"], one)
    assert one.calls == [["1", "2", "3", "4"], ["1"]]
    assert other.calls == [["4"]]


def test_threads_share_the_cache() -> None:
    cache, compass = VectorCache(max_texts=5), Compass("threads")
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda n: cache.encode([str(n % 9), "0"], compass)[0, 0], range(200)))
    assert found == pytest.approx([np.cos(np.radians(n % 9)) for n in range(200)], abs=1e-5)


MINE = [
    "I'm vegetarian.",
    "I'm lactose intolerant.",
    "I'm going to change my phone.",
    "I have a dog.",
    "I live in Oslo.",
]


@pytest.mark.model
def test_the_real_model_uses_diets_for_food_and_nothing_for_coastlines(embedder: Embedder) -> None:
    knobs = FactSettings()

    def used(utterance: str, *history: Exchange) -> set[str]:
        ranked = rank(facts(*MINE), utterance, history, embedder, knobs.threshold, knobs.max_facts)
        return {fact.text for fact in ranked if fact.used}

    diets = {"I'm vegetarian.", "I'm lactose intolerant."}
    assert used("What is a good diet?") == diets
    earlier = said("What is a good diet?", "Eat lentils, vegetables and whole grains, and little sugar.")
    assert used("And what should I eat in the evening?", earlier) >= diets
    assert used("What about iron?", earlier) >= diets
    assert not diets & used("How long is the coastline of Chile?", earlier)
    assert not used("How deep is the Pacific Ocean?")
    assert not used("Thank you very much!")
