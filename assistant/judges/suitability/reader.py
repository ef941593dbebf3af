"""The reader: a cross-encoder that reads fact and text together, and tells whether they clash."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from threading import Event

from assistant.judges.cross_encoder import PairReader
from assistant.judges.recent_results import RecentResults

# Tokens read of fact, question and text together, at most; the small reader reads no more than 96.
LENGTH = 128
# Pairs read at once, and how many readings are cached: the steps of a turn ask about the same pairs.
BATCH, KEPT = 32, 4096

Pair = tuple[str, str]


def as_reply(text: str, question: str) -> str:
    """The text with the question that it replies to, as the reader reads it; without a question the text itself."""
    return f"Asked: {' '.join(question.split())} Told: {text}" if question else text


class Reader:
    """The cross-encoder in a folder. Safe to call from several threads: they take turns.

    With a `base`, the folder holds what is added to this encoder.

    Raises:
        ModelError: a file is missing, cut short, or of another kind; the message says which and what to do.
    """

    def __init__(self, folder: Path, base: Path | None = None) -> None:
        self._model = PairReader(folder, LENGTH, base)
        self._known = RecentResults[Pair, float](KEPT)

    def logits(self, pairs: Sequence[Pair], stop: Event) -> dict[Pair, float]:
        """The log-odds of a clash of each pair of fact and text; `stop` is looked at between batches."""

        def compute(new_pairs: list[Pair]) -> Iterable[tuple[Pair, float]]:
            new_pairs.sort(key=lambda pair: (sum(map(len, pair)), pair))
            return zip(new_pairs, self._model.logits(new_pairs, BATCH, stop), strict=False)

        return self._known.of(pairs, compute)
