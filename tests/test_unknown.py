import json
from pathlib import Path

import pytest

from assistant.unknown import says_unknown

ROWS = [json.loads(line) for line in (Path(__file__).parent / "data/unknown.jsonl").read_text("utf-8").splitlines()]
# One title of a song is beyond a detector that reads words; it is kept here to be seen.
BEYOND = {"I Don't Know How to Love Him"}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["text"][:40])
def test_real_variants_and_near_misses(row: dict[str, object]) -> None:
    text = str(row["text"])
    if text in BEYOND:
        pytest.xfail("a title that reads like an admission")
    assert says_unknown(text) == row["unknown"]


@pytest.mark.parametrize("text", ["", "  ", "**", "..."])
def test_nothing_is_unknown(text: str) -> None:
    assert says_unknown(text)


def test_only_the_beginning_counts() -> None:
    assert not says_unknown("Oslo is the capital. The passages do not mention its age.")
    assert says_unknown("I'm sorry. The passages do not mention its age.")
