"""The [n] that models write."""

import pytest

from assistant.text.markers import extract_markers


@pytest.mark.parametrize(
    ("written", "numbers"),
    [
        ("Eat oats [1].", [(1,)]),
        ("Eat oats [1][2].", [(1,), (2,)]),
        ("Eat oats [1, 2].", [(1, 2)]),
        ("Eat oats [1-3].", [(1, 2, 3)]),
        ("Eat oats 【2】.", [(2,)]),
        ("Eat oats ［2］.", [(2,)]),
        ("Eat oats [^3].", [(3,)]),
        ("Eat oats 【3†source】.", [(3,)]),
        ("Eat oats.", []),
    ],
)
def test_markers_are_read_however_they_are_written(written: str, numbers: list[tuple[int, ...]]) -> None:
    marked = extract_markers(written)
    assert marked.text == "Eat oats."
    assert [listed for _, listed in marked.hints] == numbers


@pytest.mark.parametrize(
    "text", ["Use `a[1]` or\n```\nb[2]\n```", "A probability lies in [0, 1].", "It is x[0].", "Use x[1]."]
)
def test_other_brackets_are_left_alone(text: str) -> None:
    assert extract_markers(text).text == text


def test_an_interval_is_no_marker_where_there_are_fewer_passages() -> None:
    text = "Lentils cook in [10, 20] minutes [2]."
    assert extract_markers(text, max_number=3).text == "Lentils cook in [10, 20] minutes."
    assert extract_markers("Vitamin a [1], food[1].").text == "Vitamin a, food."


def test_a_number_in_a_block_between_tildes_is_left_alone() -> None:
    text = "So:\n\n~~~\nprint(a, [1])\n~~~\n"
    assert extract_markers(text).text == text
    assert extract_markers(text).hints == ()
