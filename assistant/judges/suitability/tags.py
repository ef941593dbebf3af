"""The judge by tags: does a sentence offer something that clashes with what the person said about themselves?

"Peanut butter on toast" clashes with "I have a peanut allergy", "Avoid peanuts" doesn't. The judge knows tags: what
facts rule out ("coeliac": gluten), and what things have or are ("toast": gluten, "gouda": cheese). From a fact's
embedding a network tells which groups of facts it belongs to, and so which tags it rules out; a fact may also name what
it rules out ("I can't stand coriander"). The tags of a text come from known names in it, from the known names that its
other words are near to, and from a second network. A third look at each name, with the name itself hidden, tells
whether the text offers it or warns of it. One logistic curve weighs all these signals. What was learned is in
shipped/suitability; the README there says how it was learned, and where it fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from threading import Event
from typing import TypeVar

import numpy as np

from assistant.errors import ModelError
from assistant.judges.recent_results import RecentResults
from assistant.judges.suitability.knowledge import Array, Knowledge, linear, sigmoid
from assistant.judges.suitability.readings import FAINT, Held, Readings, Ruled
from assistant.protocols import Embedder

# How many readings are cached: facts and texts come again in a conversation.
_CACHE_SIZE = 512
# Texts that are read in one go.
_BATCH = 16
# What is weighed of a pair: see `_signals`.
_SIGNAL_COUNT = 3

T = TypeVar("T")


class ByTags:
    """The judge by tags. Safe to call from several threads; what it found out about a fact or a text is cached.

    Raises:
        ModelError: what was learned belongs to another embedder.
    """

    def __init__(self, knowledge: Knowledge, embedder: Embedder) -> None:
        if embedder.name != knowledge.embedder:
            raise ModelError(
                f"The suitability judge was trained for {knowledge.embedder}, not for {embedder.name}; "
                "set embedder.model back, or train it for this one with `train suitability`."
            )
        self.knowledge = knowledge
        self._readings = Readings(knowledge, embedder)
        self._facts = RecentResults[str, Ruled](_CACHE_SIZE)
        self._texts = RecentResults[str, Held](_CACHE_SIZE)

    @property
    def threshold(self) -> float:
        """The lowest value at which a pair counts as a clash; chosen on development data, see `judge.json`."""
        return self.knowledge.threshold

    def clashes(
        self,
        facts: Sequence[str],
        texts: Sequence[str],
        stop: Event,
        question: str = "",  # noqa: ARG002 - tags know things, whatever was asked
    ) -> list[list[float]]:
        """How surely each fact clashes with each text, in [0, 1]: a row for each fact, a column for each text.

        A text is best one sentence, or the name of a thing. Empty facts and texts clash with nothing. When `stop` is
        set, what wasn't read yet has 0.
        """
        return [[self._clash_probability(signals) for signals in row] for row in self.signals(facts, texts, stop)]

    def rules_out(self, facts: Sequence[str], stop: Event) -> list[float]:
        """How surely each fact rules anything out, in [0, 1]; 0 for what wasn't read before `stop` was set."""
        read_facts = _cached_readings(self._facts, facts, self._readings.ruled, stop)
        return [float(max(fact.tags.max(), fact.sure.max(initial=0.0))) if fact else 0.0 for fact in read_facts]

    def signals(self, facts: Sequence[str], texts: Sequence[str], stop: Event) -> Array:
        """What is weighed for each pair; training learns the weights. Shape (facts, texts, 3)."""
        rows = np.zeros((len(facts), len(texts), _SIGNAL_COUNT), np.float32)
        read_facts = _cached_readings(self._facts, facts, self._readings.ruled, stop)
        ruling_facts = {row: fact for row, fact in enumerate(read_facts) if fact and (fact.tags.any() or fact.names)}
        read_texts = _cached_readings(self._texts, texts, self._readings.held, stop) if ruling_facts else []
        touches = {
            (row, column): text.touches(fact)
            for column, text in enumerate(read_texts)
            for row, fact in ruling_facts.items()
            if text is not None
        }
        offered = self._readings.offered(
            masked
            for (_, column), (tags, named_certainty) in touches.items()
            if (text := read_texts[column])
            for masked, touch in zip(text.shown, np.maximum(tags, named_certainty), strict=True)
            if touch >= FAINT
        )
        for (row, column), (tags, named_certainty) in touches.items():
            if text := read_texts[column]:
                rows[row, column] = _signals(ruling_facts[row], text, tags, named_certainty, offered)
        return rows

    def _clash_probability(self, signals: Array) -> float:
        if not signals.any():
            return 0.0
        return float(sigmoid(linear(shape(signals)[None], self.knowledge.mix[None]))[0, 0])


def _cached_readings(
    cache: RecentResults[str, T], texts: Sequence[str], read: Callable[[Sequence[str]], list[T]], stop: Event
) -> list[T | None]:
    """Each text's reading, from the cache or else by `read`, in batches; None for an empty text, or when stopped."""

    def read_new(new_texts: list[str]) -> Iterable[tuple[str, T]]:
        for start in range(0, len(new_texts), _BATCH):
            if stop.is_set():
                return
            batch = new_texts[start : start + _BATCH]
            yield from zip(batch, read(batch), strict=True)

    keys = [" ".join(text.split()) for text in texts]
    results = cache.of(filter(None, keys), read_new)
    return [results.get(key) for key in keys]


def _signals(fact: Ruled, text: Held, tags: Array, named_certainty: Array, offered: Mapping[str, float]) -> Array:
    """What speaks for a clash, each in [0, 1]: the tags of names, those of the whole text, and names in both."""
    offer_probabilities = np.array([offered.get(masked, 0.0) for masked in text.shown], np.float32)
    return np.array(
        [
            (tags * offer_probabilities).max(initial=0.0),
            (text.whole * fact.tags).max(initial=0.0) * text.offers,
            (named_certainty * offer_probabilities).max(initial=0.0),
        ],
        np.float32,
    )


def shape(signals: Array) -> Array:
    """Signals as the logistic curve takes them: small ones spread out. Shape of `signals`."""
    spread: Array = np.sqrt(np.asarray(signals, np.float32))
    return spread
