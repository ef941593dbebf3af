"""Quotes the figures of a comparison of which the model told one side only, or none.

Small models asked who is richer say unknown where they are shown what both have, or tell what one has; and of passages
asked alone none can compare. Which of the figures answers is the relevance estimator's to say.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from threading import Event

from assistant import citations
from assistant.counterparts import Place, counterparts, text_of
from assistant.errors import SequiturError
from assistant.figures import figures_in
from assistant.retrieve.sides import sides
from assistant.support import compares, mentions_all
from assistant.types import Answer, Estimator, Parts, Passage, Query, Turn

QUOTED = "No answer told of all that is compared, so what the passages say of each is quoted."
# Of 27 comparisons that were looked at, the figures that answer were at 0.61 to 0.88, and but one of the others below.
LIKELY = 0.5


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Replaces a chat answer to a comparison that lacks figures by sentences on each thing, where there are such."""
    compared = sides(turn.question) if compares(turn.question) else ()
    names = [side.name for side in compared]
    if parts.estimator and turn.answer and _asks(turn) and not stop.is_set() and not _tells_of_all(turn, names):
        try:
            found = _likeliest(compared, names, turn, parts.estimator(parts.llm), stop)
        except SequiturError:
            found = []
        *_, quoted = citations.settle(turn.grow(answer=Answer(" ".join(map(text_of, found)), not found)), parts, stop)
        if quoted.answer and not quoted.answer.unknown:
            turn = quoted.told(QUOTED)
    yield turn


def _asks(turn: Turn) -> bool:
    """Whether an answer from passages was wanted that they seem to hold."""
    return turn.choices.form == "chat" and turn.confidence is not None and turn.confidence.level != "none"


def _tells_of_all(turn: Turn, names: Sequence[str]) -> bool:
    """Whether the answer gives, with a source, a figure of each thing; the source is on it, or on none of them."""
    titles = {passage.id: passage.title for passage in turn.passages}
    told: set[str] = set()
    for one in turn.citations:
        about = [name for name in names if mentions_all(titles[one.passage_id], [name])] or names
        told.update(name for name in about if figures_in(one.sentence) and mentions_all(one.sentence, [name]))
    return told >= set(names)


def _likeliest(
    compared: Sequence[Query], names: Sequence[str], turn: Turn, estimator: Estimator, stop: Event
) -> list[Place]:
    """The sentences that tell the same of each thing, and most likely what is asked for; none if that isn't likely."""
    found = [*counterparts(names, turn.passages)]
    alone = [Passage(str(n), places[0][0].title, text_of(places[0])) for n, places in enumerate(found)]
    relevance = estimator.estimate(compared[0].text, alone, stop) if alone else []
    rated = sorted(zip(relevance, found, strict=True), key=lambda one: -one[0].score)
    return next((places for likely, places in rated if likely.confidence >= LIKELY), [])
