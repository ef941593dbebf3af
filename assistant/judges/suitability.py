"""Suitability: does a sentence offer what clashes with something that the person said of themselves?

"Peanut butter on toast" clashes with "I have a peanut allergy", "Avoid peanuts" doesn't. The weights that come with
Sequitur lie in shipped/suitability; how they were trained and where they fail is told in the README there.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from threading import Event

from assistant.errors import ModelError
from assistant.judges._model import PairModel

SHIPPED = Path(__file__).parent / "shipped" / "suitability"


class Suitability:
    """Reads facts beside texts and says how likely each of them clash. Threads take turns.

    Raises:
        ModelError: the folder holds no such judge, or one that is damaged.
    """

    def __init__(self, folder: Path = SHIPPED) -> None:
        try:
            self._model = PairModel(folder)
        except ModelError as error:
            raise ModelError(f"The suitability judge can't be used: {error}") from error

    @property
    def threshold(self) -> float:
        """The probability from which on a pair counts as a clash; chosen on development data, see `judge.json`."""
        return self._model.curve.threshold

    def clashes(self, facts: Sequence[str], texts: Sequence[str], stop: Event) -> list[list[float]]:
        """How likely each fact clashes with each text, in [0, 1]: a row a fact, a column a text.

        A text is best one sentence, or the name of a thing. Empty facts and texts clash with nothing; a pair that
        stands there twice is read once. When `stop` is set, what wasn't read yet has 0.
        """
        pairs = list(dict.fromkeys((fact, text) for fact in facts for text in texts if fact.strip() and text.strip()))
        known = dict(zip(pairs, self._model.probabilities(pairs, stop), strict=True))
        return [[known.get((fact, text), 0.0) for text in texts] for fact in facts]
