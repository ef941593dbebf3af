"""What a fact rules out, and what a text contains, as the networks and the known things tell from embeddings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from assistant.judges.recent_results import RecentResults
from assistant.judges.suitability.knowledge import Array, Knowledge, linear, sigmoid
from assistant.judges.suitability.names import Name, hidden, names
from assistant.protocols import Embedder

# A cosine up to the first says nothing; from the second on it is the same thing in other words.
_UNRELATED, _SAME_THING = 0.5, 0.9
# Two names mean the same from the second on, and not at all up to the first.
_OTHER_NAME, _SAME_NAME = 0.7, 0.95
# How many known things nearest to a name are looked at.
_NEAREST_THINGS = 8
# A tag less sure than this doesn't count; a name that matters less than this is not looked at.
FAINT = 0.1
# How many names, and texts with a hidden name, are cached: the same ones come again in many texts.
_CACHE_SIZE = 4096


@dataclass(frozen=True, slots=True, eq=False)
class Ruled:
    """What a fact rules out, and how surely: `tags` (T,), and things by name, with embeddings (m, d)."""

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
        named_certainty = np.zeros(len(self.names), np.float32)
        for name, vector, certainty in zip(fact.names, fact.vectors, fact.sure, strict=True):
            is_same = np.array([other_name == name for other_name in self.names], np.float32)
            similarity = np.clip((self.vectors @ vector - _OTHER_NAME) / (_SAME_NAME - _OTHER_NAME), 0, 1)
            named_certainty = np.maximum(named_certainty, certainty * np.maximum(is_same, similarity))
        return (self.tags * fact.tags).max(axis=1), named_certainty


class Readings:
    """Reads facts and texts. Safe to call from several threads."""

    def __init__(self, knowledge: Knowledge, embedder: Embedder) -> None:
        self._knowledge, self._embedder = knowledge, embedder
        self._vectors = RecentResults[str, Array](_CACHE_SIZE)
        self._offers = RecentResults[str, float](_CACHE_SIZE)

    def ruled(self, facts: Sequence[str]) -> list[Ruled]:
        """What facts rule out."""
        knowledge = self._knowledge
        group_probabilities = knowledge.groups(self._embedder.encode(facts))
        names_by_fact = [
            [name for name in names(fact, knowledge.places) if name.known or self._is_unusual(name)] for fact in facts
        ]
        masked_facts = [
            hidden(fact, name) for fact, fact_names in zip(facts, names_by_fact, strict=True) for name in fact_names
        ]
        certainties = (
            sigmoid(linear(self._embedder.encode(masked_facts), knowledge.named[None]))[:, 0]
            if masked_facts
            else knowledge.named[:0]
        )
        results = []
        for probabilities, fact_names in zip(group_probabilities, names_by_fact, strict=True):
            fact_certainties, certainties = certainties[: len(fact_names)], certainties[len(fact_names) :]
            tags = (probabilities[:, None] * knowledge.rules).max(axis=0)
            for name, certainty in zip(fact_names, fact_certainties, strict=True):
                if (tag_index := knowledge.tag_places.get(name.plain)) is not None:
                    tags[tag_index] = max(tags[tag_index], certainty)
            vectors = self._encoded([name.text for name in fact_names])
            results.append(Ruled(_clear(tags), tuple(name.plain for name in fact_names), vectors, fact_certainties))
        return results

    def held(self, texts: Sequence[str]) -> list[Held]:
        """What texts hold."""
        knowledge = self._knowledge
        names_by_text = [names(text, knowledge.places) for text in texts]
        remaining_vectors = self._encoded([name.text for text_names in names_by_text for name in text_names])
        remaining_tags = self._nearness_tags(remaining_vectors)
        text_vectors = self._embedder.encode(texts)
        offer_probabilities = sigmoid(linear(text_vectors, knowledge.offers[None]))[:, 0]
        results = []
        for text, text_names, text_tags, offer_probability in zip(
            texts, names_by_text, knowledge.marks(text_vectors), offer_probabilities, strict=True
        ):
            vectors, remaining_vectors = remaining_vectors[: len(text_names)], remaining_vectors[len(text_names) :]
            name_tags, remaining_tags = remaining_tags[: len(text_names)], remaining_tags[len(text_names) :]
            known_tags = self._known_tags(text_names)
            for n, name in enumerate(text_names):
                if name.known:
                    name_tags[n] = known_tags[n]
            indices = [n for n, name in enumerate(text_names) if name.known or name_tags[n].max() >= 2 * FAINT]
            masked_texts = tuple(hidden(text, text_names[n]) for n in indices)
            plain_names = tuple(text_names[n].plain for n in indices)
            results.append(
                Held(
                    plain_names, vectors[indices], name_tags[indices], text_tags, masked_texts, float(offer_probability)
                )
            )
        return results

    def offered(self, masked_texts: Iterable[str]) -> dict[str, float]:
        """How surely each text offers the name that is hidden in it."""

        def compute(new_texts: list[str]) -> Iterable[tuple[str, float]]:
            probabilities = sigmoid(linear(self._embedder.encode(new_texts), self._knowledge.offers[None]))[:, 0]
            return zip(new_texts, probabilities.tolist(), strict=True)

        return self._offers.of(masked_texts, compute)

    def _is_unusual(self, name: Name) -> bool:
        """Whether no word of an unknown name is one that facts often have."""
        return not set(name.plain.split()) & self._knowledge.ordinary

    def _known_tags(self, text_names: Sequence[Name]) -> Array:
        """The tags (m, T) of names that are known, 0 for others."""
        knowledge = self._knowledge
        tags = np.zeros((len(text_names), len(knowledge.tags)), np.float32)
        for n, name in enumerate(text_names):
            for thing_index in knowledge.places.get(name.plain, ()):
                tags[n] = np.maximum(tags[n], knowledge.has[thing_index])
        return tags

    def _nearness_tags(self, vectors: Array) -> Array:
        """Tags (m, T) of names by what they are near to."""
        knowledge = self._knowledge
        if not len(vectors):
            return np.zeros((0, len(knowledge.tags)), np.float32)
        cosines = vectors @ knowledge.things.T
        nearest = np.argpartition(-cosines, min(_NEAREST_THINGS, cosines.shape[1] - 1), axis=1)[:, :_NEAREST_THINGS]
        weight = np.clip((np.take_along_axis(cosines, nearest, axis=1) - _UNRELATED) / (_SAME_THING - _UNRELATED), 0, 1)
        neighbour_tags = (weight[:, :, None] * knowledge.has[nearest]).max(axis=1)
        tags: Array = np.asarray((neighbour_tags + knowledge.marks(vectors)) / 2, np.float32)
        return tags

    def _encoded(self, texts: Sequence[str]) -> Array:
        """Embeddings of names, which come again in many texts. Shape (m, d)."""
        vectors = self._vectors.of(texts, lambda missing: zip(missing, self._embedder.encode(missing), strict=True))
        return np.stack([vectors[text] for text in texts]) if texts else self._knowledge.things[:0]


def _clear(tags: Array) -> Array:
    return np.where(tags >= FAINT, tags, 0).astype(np.float32)
