"""Suitability: does a sentence offer what clashes with something that the person said of themselves?

"Peanut butter on toast" clashes with "I have a peanut allergy", "Avoid peanuts" doesn't. The judge knows a few hundred
tags: what facts rule out ("coeliac": gluten), and what things have ("toast": gluten). Which tags a fact rules out is
told by a classifier of its embedding; which tags a text has, by the known things that its words are near to, and by a
classifier a tag; and a third one tells texts that offer something from those that warn of it. What was learned lies in
shipped/suitability; how, and where it fails, is told in the README there.
"""

from __future__ import annotations

import json
import re
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Lock

import numpy as np
from numpy.typing import NDArray

from assistant.errors import ModelError
from assistant.types import Embedder

SHIPPED = Path(__file__).parent / "shipped" / "suitability"
ARRAYS, NOTES = "knowledge.npz", "judge.json"
_WORD = re.compile(r"[\w'’-]+")
# Words in a row that may name a thing; a name neither begins nor ends with one of these.
_LONGEST = 3
_JOINING = frozenset(
    "a an and are as at be by for from in is it of on or some that the their this to with you your".split()
)
# A cosine up to the first says nothing; from the second on it is the same thing in other words.
_FAR, _SAME = 0.5, 0.9
# Of words that name a thing, parts are not looked at: butter is not in peanut butter.
_NAMED = 0.8
_KEPT = 4096

Array = NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class Knowledge:
    """What was learned, for embeddings of `dimension` d from the embedder that is named.

    `groups` (G, d + 1) are the weights of a softmax over groups of facts, the last of which rule nothing out, `rules`
    (G, T) say which of T tags each group rules out; `things` (n, d) are known things, `has` (n, T) their tags; `tags`
    (T, d + 1) are the weights of a logistic curve a tag, all zero where there were too few things; `offers` (d + 1,)
    those of whether a text offers anything. Weights end with the intercept.
    """

    groups: Array
    rules: Array
    things: Array
    has: Array
    tags: Array
    offers: Array
    embedder: str
    threshold: float
    chosen_on: str

    def save(self, folder: Path) -> None:
        """Write it into the folder."""
        folder.mkdir(parents=True, exist_ok=True)
        arrays = {name: getattr(self, name).astype(np.float16) for name in _ARRAYS}
        np.savez_compressed(folder / ARRAYS, **arrays)
        notes = {name: getattr(self, name) for name in _NOTES}
        (folder / NOTES).write_text(json.dumps(notes, indent=2) + "\n", encoding="utf-8")

    @staticmethod
    def load(folder: Path) -> Knowledge:
        """Read what `save` wrote.

        Raises:
            ModelError: it is missing or broken.
        """
        try:
            notes = json.loads((folder / NOTES).read_text(encoding="utf-8"))
            with np.load(folder / ARRAYS) as stored:
                arrays = {name: stored[name].astype(np.float32) for name in _ARRAYS}
            return Knowledge(**arrays, **{name: notes[name] for name in _NOTES})
        except Exception as error:  # a broken archive may raise anything
            told = f"{folder} holds no complete judge ({error}); get or train it again."
            raise ModelError(f"The suitability judge can't be used: {told}") from error


_ARRAYS = ("groups", "rules", "things", "has", "tags", "offers")
_NOTES = ("embedder", "threshold", "chosen_on")


@dataclass(eq=False)
class Suitability:
    """The judge. Safe to call from several threads; what it found of a fact or a text is kept.

    Raises:
        ModelError: what was learned belongs to another embedder.
    """

    knowledge: Knowledge
    embedder: Embedder
    _found: OrderedDict[tuple[str, str], Array] = field(default_factory=OrderedDict)
    _lock: Lock = field(default_factory=Lock)

    def __post_init__(self) -> None:
        if self.embedder.name != self.knowledge.embedder:
            raise ModelError(
                f"The suitability judge was trained for {self.knowledge.embedder}, not for {self.embedder.name}; "
                "set embedder.model back, or train it for this one with `train suitability`."
            )

    @property
    def threshold(self) -> float:
        """From which on a pair counts as a clash; chosen on development data, see `judge.json`."""
        return self.knowledge.threshold

    def clashes(self, facts: Sequence[str], texts: Sequence[str], stop: Event) -> list[list[float]]:
        """How surely each fact clashes with each text, in [0, 1]: a row a fact, a column a text.

        A text is best one sentence, or the name of a thing. Empty facts and texts clash with nothing. When `stop` is
        set, what wasn't read yet has 0.
        """
        ruled = [self._kept("fact", fact, self._ruled_out) for fact in facts]
        if not any(one.any() for one in ruled):
            return [[0.0] * len(texts) for _ in facts]
        nothing = np.zeros(self.knowledge.rules.shape[1], np.float32)
        had = [nothing if stop.is_set() else self._kept("text", text, self._offered) for text in texts]
        return [[float((rule * tags).max(initial=0.0)) for tags in had] for rule in ruled]

    def _kept(self, kind: str, text: str, look: Callable[[str], Array]) -> Array:
        key = kind, " ".join(text.split())
        with self._lock:
            if key in self._found:
                self._found.move_to_end(key)
                return self._found[key]
        found = look(key[1]) if key[1] else np.zeros(self.knowledge.rules.shape[1], np.float32)
        with self._lock:
            self._found[key] = found
            if len(self._found) > _KEPT:
                self._found.popitem(last=False)
        return found

    def _ruled_out(self, fact: str) -> Array:
        """How surely a fact rules out each tag; all 0 for one that most likely rules out nothing. Shape (T,)."""
        [vector] = self.embedder.encode([fact])
        logits = _linear(vector, self.knowledge.groups)
        likely = np.exp(logits - logits.max())
        likely /= likely.sum()
        found: Array = likely @ self.knowledge.rules
        return found if likely.argmax() < len(likely) - 1 else np.zeros_like(found)

    def _offered(self, text: str) -> Array:
        """How surely a text offers something with each tag. Shape (T,)."""
        names = _names(text)
        vectors = self.embedder.encode([text, *(name for _, _, name in names)])
        near = vectors @ self.knowledge.things.T
        kept = [0, *(n + 1 for n in _outermost(names, near[1:].max(axis=1, initial=0.0)))]
        share = np.clip((near[kept].max(axis=0) - _FAR) / (_SAME - _FAR), 0, 1)
        known: Array = (share[:, None] * self.knowledge.has).max(axis=0)
        taught = self.knowledge.tags.any(axis=1)
        likely = _sigmoid(_linear(vectors[kept], self.knowledge.tags)).max(axis=0)
        tags = np.where(taught, (known + likely) / 2, known)
        offers = _sigmoid(_linear(vectors[0], self.knowledge.offers[None]))[0]
        found: Array = np.asarray(tags * np.sqrt(offers), np.float32)
        return found


def _linear(vectors: Array, weights: Array) -> Array:
    found: Array = np.asarray(vectors @ weights[:, :-1].T + weights[:, -1])
    return found


def _sigmoid(logits: Array) -> Array:
    found: Array = np.asarray(1 / (1 + np.exp(-np.clip(logits, -30, 30))), np.float32)
    return found


def _names(text: str) -> list[tuple[int, int, str]]:
    """Words in a row that may name a thing, each with the numbers of its first word and of the word behind it."""
    words = _WORD.findall(text)
    places = ((start, start + n) for n in range(1, _LONGEST + 1) for start in range(len(words) - n + 1))
    return [
        (start, end, " ".join(words[start:end]))
        for start, end in places
        if words[start].lower() not in _JOINING and words[end - 1].lower() not in _JOINING
    ]


def _outermost(names: Sequence[tuple[int, int, str]], near: Array) -> list[int]:
    """The numbers of the names that are no part of a longer one which surely names something."""
    sure = [(start, end, near[n]) for n, (start, end, _) in enumerate(names) if near[n] >= _NAMED]
    return [
        n
        for n, (start, end, _) in enumerate(names)
        if not any(a <= start and end <= b and b - a > end - start and score >= near[n] for a, b, score in sure)
    ]
