"""The word that the prompts ask for where the answer is not known, and what only looks like it."""

import pytest

from assistant.prompting.unknown import says_unknown


@pytest.mark.parametrize(
    "text",
    [
        "", "  ", "**", "...", "unknown", "Unknown.", '"unknown"', "**Unknown**", "Answer: unknown",
        "Final answer: Unknown.", "The answer is unknown.", "It's unknown.", "It’s unknown.",
        "unknown, as the notes are on something else",
        "Unknown. The notes tell of Peru.", "unknown\n\nThe notes tell of Peru.", "Unknown (not in the notes)",
        "The provided input does not contain the context to answer the question.",
    ],
)  # fmt: skip
def test_the_word_with_or_without_a_frame_is_unknown(text: str) -> None:
    assert says_unknown(text)


@pytest.mark.parametrize(
    "text",
    [
        "Unknown Pleasures", "The Unknown Soldier", "It was unknown to Europeans until 1492.", "None of the above",
        "Na", "Lima. Its founder is unknown.", 'The function returns "unknown".', "The cause is unknown in many cases.",
    ],
)  # fmt: skip
def test_an_answer_that_has_the_word_is_none(text: str) -> None:
    assert not says_unknown(text)
