"""What the relevance estimator's numbers mean, in plain words."""

from __future__ import annotations

from collections.abc import Iterator

from assistant.types import Confidence, Turn
from assistant.wording.views import lacks_sourced_answer, unsourced_kind

LEVELS = {"well": "Well supported", "weak": "Weakly supported", "none": "Not in the library"}
UNANSWERED = "Relevant passages, but no answer"
# Where no reply was checked, only the passages can be spoken of.
UNCHECKED = {"well": "Relevant passages", "weak": "Hardly relevant passages", "none": "Not in the library"}
# Who judges, by the kind that an estimator's name begins with.
JUDGES = {
    "cross-encoder": "a small model trained to tell which passages answer a question",
    "seq2seq": "a model trained to tell which passages answer a question",
    "llm": "the language model, asked of each passage whether it answers the question",
    "cosine": "how alike in meaning question and passage are",
}


def verdict(turn: Turn) -> str:
    """How well the passages support the reply, in words; "" where nobody estimated them.

    Of a reply that is being written, or was stopped before its sentences were checked, only what was found is told.
    """
    if turn.confidence is None:
        return ""
    level = turn.confidence.level
    if turn.status != "done" and not turn.citations:
        return UNCHECKED[level]
    if level == "none":
        # a reply whose sentences were found in passages was found in the library, whatever was expected of it
        return LEVELS["weak" if turn.citations else level]
    return UNANSWERED if lacks_sourced_answer(turn) else LEVELS[level]


def number(value: float) -> str:
    """A confidence as a person reads it: two decimals, and never certain."""
    if value < 0.01:
        return "under 0.01"
    return "over 0.99" if value > 0.99 else f"{value:.2f}"


def about_set(turn: Turn) -> Iterator[str]:
    """What the confidence of a turn's passages means and where it comes from, a sentence or two at a time."""
    if (confidence := turn.confidence) is None:
        return
    well_threshold = (1 + confidence.threshold) / 2
    yield (
        f"{_sureness('the passages hold the answer', confidence.value)}. It is the number of the best passage that was "
        f"looked at. From {well_threshold:.2f} a reply counts as well supported; under {confidence.threshold:g} the "
        "library counts as not holding the answer."
    )
    if confidence.level == "none" and turn.citations:
        yield "Sentences of the reply were found in the passages all the same, so it counts as weakly supported."
    elif confidence.level == "none" and turn.answer and not turn.answer.unknown and not unsourced_kind(turn):
        yield "The reply was made from the passages all the same, as the settings say."
    yield from _origin(confidence)


def about_passage(confidence: float, overall: Confidence | None) -> Iterator[str]:
    """What the confidence of one passage means; `overall` is that of the set it belongs to."""
    yield f"{_sureness('this passage answers the question', confidence)}."
    if overall:
        yield from _origin(overall)


def _sureness(claim: str, value: float) -> str:
    return f"How sure Sequitur is that {claim}: {number(value)}, between 0 (surely not) and 1 (surely)"


def _origin(confidence: Confidence) -> Iterator[str]:
    """Who judged, and whether the number can be taken at its word."""
    judge = JUDGES.get(confidence.estimator.partition(":")[0], "a relevance estimator")
    yield f"Judged by {judge} ({confidence.estimator})."
    if confidence.calibration:
        yield (
            f"Calibrated ({confidence.calibration}): of a hundred passages rated 0.70, about seventy should answer "
            "their question; on texts of another kind it may be off by more."
        )
    else:
        yield "Not calibrated: higher is likelier, but of a hundred rated 0.70, fewer or more than seventy may answer."
