import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.retrieve.fusion import fuse
from assistant.types import Passage


def ranking(ids: str) -> list[Passage]:
    return [Passage(one, one.upper(), f"text {one}", score=9.0 - n) for n, one in enumerate(ids)]


def test_scores_are_sums_of_reciprocal_ranks():
    fused = fuse({"question": ranking("ab"), "draft": ranking("bc")}, 10)
    assert [one.id for one in fused] == ["b", "a", "c"]
    assert [one.score for one in fused] == pytest.approx([1 / 62 + 1 / 61, 1 / 61, 1 / 62])


def test_a_passage_says_which_queries_found_it():
    fused = fuse({"question": ranking("ab"), "draft": ranking("bc")}, 10)
    assert {one.id: one.found_by for one in fused} == {"b": ("question", "draft"), "a": ("question",), "c": ("draft",)}


def test_ties_go_by_best_rank_then_by_the_order_of_the_rankings():
    fused = fuse({"one": ranking("ax"), "two": ranking("by")}, 10)
    assert [one.id for one in fused] == ["a", "b", "x", "y"]


def test_the_constant_says_how_much_high_ranks_count():
    rankings = {"one": ranking("a1234b"), "two": ranking("56789b")}
    assert fuse(rankings, 1, constant=1)[0].id == "a"
    assert fuse(rankings, 1, constant=60)[0].id == "b"


@pytest.mark.parametrize("k", [0, -1])
def test_none_are_asked_for(k):
    assert fuse({"one": ranking("abc")}, k) == []


def test_nothing_was_found():
    assert fuse({}, 5) == []
    assert fuse({"one": []}, 5) == []


def test_a_passage_twice_in_one_ranking_counts_once():
    assert fuse({"one": ranking("aa")}, 5)[0].score == pytest.approx(1 / 61)


@given(st.lists(st.lists(st.sampled_from("abcdef"), unique=True), max_size=4), st.integers(0, 8))
def test_fusion_keeps_every_passage_once_best_first(rankings, k):
    fused = fuse({str(n): ranking("".join(one)) for n, one in enumerate(rankings)}, k)
    every = {one for each in rankings for one in each}
    assert len(fused) == min(k, len(every))
    assert len({one.id for one in fused}) == len(fused)
    assert [one.score for one in fused] == sorted((one.score for one in fused), reverse=True)
