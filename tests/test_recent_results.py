"""What a judge found is looked for once, and what it could not find is looked for again."""

from __future__ import annotations

from collections.abc import Iterable

from assistant.judges.recent_results import RecentResults


class Lengths:
    """Finds how long words are; keeps what it was asked for, and skips the words of `hidden`."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.hidden = {"hidden"}

    def __call__(self, words: list[str]) -> Iterable[tuple[str, int]]:
        self.asked.append(words)
        return [(word, len(word)) for word in words if word not in self.hidden]


def test_what_is_known_is_not_looked_for_and_nothing_is_twice() -> None:
    kept, look = RecentResults[str, int](8), Lengths()
    assert kept.of(["one", "three", "one"], look) == {"one": 3, "three": 5}
    assert kept.of(["three", "seven"], look) == {"three": 5, "seven": 5}
    assert kept.of(["one"], look) == {"one": 3}
    assert look.asked == [["one", "three"], ["seven"]]


def test_what_was_not_found_is_looked_for_again() -> None:
    kept, look = RecentResults[str, int](8), Lengths()
    assert kept.of(["hidden", "one"], look) == {"one": 3}
    look.hidden.clear()
    assert kept.of(["hidden", "one"], look) == {"hidden": 6, "one": 3}
    assert look.asked == [["hidden", "one"], ["hidden"]]


def test_more_may_be_asked_at_once_than_is_kept() -> None:
    kept, look = RecentResults[str, int](2), Lengths()
    words = ["a", "bb", "ccc", "dddd"]
    assert kept.of(words, look) == {word: len(word) for word in words}
    assert kept.of(words[2:], look) == {"ccc": 3, "dddd": 4}
    assert kept.of(["a"], look) == {"a": 1}
    assert look.asked == [words, ["a"]]
