"""What a fact rules out, and what a text holds, as the networks and the known things tell of their embeddings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from assistant.judges.recent_results import RecentResults
from assistant.judges.suitability.knowledge import Array, Knowledge, linear, sigmoid
from assistant.judges.suitability.names import Name, hidden, names
from assistant.protocols import Embedder

# A cosine up to the first says nothing; from the second on it is the same thing in other words.
_FAR, _SAME = 0.5, 0.9
# Two names mean the same from the second on, and not at all up to the first.
_OTHER, _ALIKE = 0.7, 0.95
# So many known things nearest to a name are looked at.
_NEAREST = 8
# A tag less sure than this is none; a name that says less than this is not looked at.
FAINT = 0.1
# Names and texts with a hidden name are kept: they come again in many texts.
_KEPT = 4096


@dataclass(frozen=True, slots=True, eq=False)
class Ruled:
    """What a fact rules out: `tags` (T,) how surely; and things by name, with embeddings (m, d) and how surely."""

    tags: Array
    names: tuple[str, ...]
    vectors: Array
    sure: Array


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """What a text holds: names, their embeddings (m, d) and tags (m, T), and the tags of the `whole` (T,).

    `shown` is the text with each name hidden, which tells how surely it offers that; `offers` is how surely it offers
    anything.
    """

    names: tuple[str, ...]
    vectors: Array
    tags: Array
    whole: Array
    shown: tuple[str, ...]
    offers: float

    def touches(self, fact: Ruled) -> tuple[Array, Array]:
        """How surely the fact rules out each name: by its tags, and because the fact names it. Shapes (m,)."""
        named = np.zeros(len(self.names), np.float32)
        for name, vector, sure in zip(fact.names, fact.vectors, fact.sure, strict=True):
            same = np.array([other == name for other in self.names], np.float32)
            alike = np.clip((self.vectors @ vector - _OTHER) / (_ALIKE - _OTHER), 0, 1)
            named = np.maximum(named, sure * np.maximum(same, alike))
        return (self.tags * fact.tags).max(axis=1), named


class Readings:
    """Reads facts and texts. Safe to call from several threads."""

    def __init__(self, knowledge: Knowledge, embedder: Embedder) -> None:
        self._knowledge, self._embedder = knowledge, embedder
        self._vectors = RecentResults[str, Array](_KEPT)
        self._offers = RecentResults[str, float](_KEPT)

    def ruled(self, facts: Sequence[str]) -> list[Ruled]:
        """What facts rule out."""
        know = self._knowledge
        likely = know.groups(self._embedder.encode(facts))
        told = [[name for name in names(fact, know.places) if name.known or self._odd(name)] for fact in facts]
        shown = [hidden(fact, name) for fact, some in zip(facts, told, strict=True) for name in some]
        sure = sigmoid(linear(self._embedder.encode(shown), know.named[None]))[:, 0] if shown else know.named[:0]
        found = []
        for probable, some in zip(likely, told, strict=True):
            mine, sure = sure[: len(some)], sure[len(some) :]
            tags = (probable[:, None] * know.rules).max(axis=0)
            for name, share in zip(some, mine, strict=True):
                if (tag := know.tag_places.get(name.plain)) is not None:
                    tags[tag] = max(tags[tag], share)
            vectors = self._encoded([name.text for name in some])
            found.append(Ruled(_clear(tags), tuple(name.plain for name in some), vectors, mine))
        return found

    def held(self, texts: Sequence[str]) -> list[Held]:
        """What texts hold."""
        know = self._knowledge
        rows = [names(text, know.places) for text in texts]
        together = self._encoded([name.text for some in rows for name in some])
        guessed = self._likely(together)
        whole = self._embedder.encode(texts)
        offers = sigmoid(linear(whole, know.offers[None]))[:, 0]
        found = []
        for text, some, tags, sure in zip(texts, rows, know.marks(whole), offers, strict=True):
            vectors, together = together[: len(some)], together[len(some) :]
            likely, guessed = guessed[: len(some)], guessed[len(some) :]
            known = self._known(some)
            for n, name in enumerate(some):
                if name.known:
                    likely[n] = known[n]
            kept = [n for n, name in enumerate(some) if name.known or likely[n].max() >= 2 * FAINT]
            shown = tuple(hidden(text, some[n]) for n in kept)
            plain_names = tuple(some[n].plain for n in kept)
            found.append(Held(plain_names, vectors[kept], likely[kept], tags, shown, float(sure)))
        return found

    def offered(self, shown: Iterable[str]) -> dict[str, float]:
        """How surely each text offers the name that is hidden in it."""

        def look(new: list[str]) -> Iterable[tuple[str, float]]:
            sure = sigmoid(linear(self._embedder.encode(new), self._knowledge.offers[None]))[:, 0]
            return zip(new, sure.tolist(), strict=True)

        return self._offers.of(shown, look)

    def _odd(self, name: Name) -> bool:
        """Whether no word of an unknown name is one that facts often have."""
        return not set(name.plain.split()) & self._knowledge.ordinary

    def _known(self, some: Sequence[Name]) -> Array:
        """The tags (m, T) of names that are known, 0 for others."""
        know = self._knowledge
        found = np.zeros((len(some), len(know.tags)), np.float32)
        for n, name in enumerate(some):
            for place in know.places.get(name.plain, ()):
                found[n] = np.maximum(found[n], know.has[place])
        return found

    def _likely(self, vectors: Array) -> Array:
        """Tags (m, T) of names by what they are near to."""
        know = self._knowledge
        if not len(vectors):
            return np.zeros((0, len(know.tags)), np.float32)
        near = vectors @ know.things.T
        nearest = np.argpartition(-near, min(_NEAREST, near.shape[1] - 1), axis=1)[:, :_NEAREST]
        share = np.clip((np.take_along_axis(near, nearest, axis=1) - _FAR) / (_SAME - _FAR), 0, 1)
        alike = (share[:, :, None] * know.has[nearest]).max(axis=1)
        found: Array = np.asarray((alike + know.marks(vectors)) / 2, np.float32)
        return found

    def _encoded(self, some: Sequence[str]) -> Array:
        """Embeddings of names, which come again in many texts. Shape (m, d)."""
        found = self._vectors.of(some, lambda new: zip(new, self._embedder.encode(new), strict=True))
        return np.stack([found[text] for text in some]) if some else self._knowledge.things[:0]


def _clear(tags: Array) -> Array:
    return np.where(tags >= FAINT, tags, 0).astype(np.float32)
