"""Suitability: does a sentence offer what clashes with something that the person said of themselves?

"Peanut butter on toast" clashes with "I have a peanut allergy", "Avoid peanuts" doesn't. The judge knows tags: what
facts rule out ("coeliac": gluten), and what things have or are ("toast": gluten, "gouda": cheese). A network tells of
a fact's embedding which groups of facts it belongs to, and so which tags it rules out; a fact may also name what it
rules out ("I can't stand coriander"). Which tags a text has is told by the names in it that are known, by the known
names that other words are near to, and by a second network. A third look at each name, with the name itself hidden,
tells whether the text offers it or warns of it. One logistic curve weighs these. What was learned lies in
shipped/suitability; how, and where it fails, is told in the README there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from threading import Event, Lock
from typing import Any, TypeVar

import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

from assistant.errors import ModelError
from assistant.judges._names import Name, hidden, names, plain
from assistant.protocols import Embedder

SHIPPED = Path(__file__).parent / "shipped" / "suitability"
ARRAYS, NOTES, NAMES = "knowledge.npz", "judge.json", "names.txt"
# A cosine up to the first says nothing; from the second on it is the same thing in other words.
_FAR, _SAME = 0.5, 0.9
# Two names mean the same from the second on, and not at all up to the first.
_OTHER, _ALIKE = 0.7, 0.95
# So many known things nearest to a name are looked at.
_NEAREST = 8
# A tag less sure than this is none; a name that says less than this is not looked at.
_FAINT = 0.1
# Readings that are kept: facts and texts come again in a conversation, and single names in many texts.
_KEPT, _KEPT_NAMES = 512, 4096
# Texts that are read in one go.
_TOGETHER = 16

Array = NDArray[np.float32]
T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class Network:
    """One hidden layer with ReLU and a logistic curve an output: `first` (h, d + 1), `second` (k, h + 1)."""

    first: Array
    second: Array

    def __call__(self, vectors: Array) -> Array:
        """Probabilities (n, k) for vectors (n, d)."""
        hidden_layer = np.maximum(_linear(vectors, self.first), 0)
        return _sigmoid(_linear(hidden_layer, self.second))


@dataclass(frozen=True, eq=False)
class Knowledge:
    """What was learned, for embeddings of `dimension` d from the embedder that is named.

    `groups` tells of a fact which of G groups it belongs to; `rules` (G, T) says which of T tags each group rules out.
    `tags` are their names, `things` (n, d) known things, `names` (n) theirs, `has` (n, T) their tags; `marks` tells the
    tags of the embedding of a name or text. `named` (d + 1,) is the logistic curve of whether a fact rules out what it
    names, with the name hidden, and `offers` that of whether a text offers it; `mix` weighs the signals of a pair.
    `ordinary` are plain words of facts that name nothing: "allergic", "hate".
    """

    groups: Network
    rules: Array
    names: tuple[str, ...]
    tags: tuple[str, ...]
    things: Array
    has: Array
    marks: Network
    named: Array
    offers: Array
    mix: Array
    ordinary: frozenset[str]
    embedder: str
    threshold: float
    chosen_on: str

    @cached_property
    def places(self) -> dict[str, list[int]]:
        """Where the things of each plain name stand."""
        found: dict[str, list[int]] = {}
        for n, name in enumerate(self.names):
            found.setdefault(plain(name), []).append(n)
        return found

    @cached_property
    def tag_places(self) -> dict[str, int]:
        """Where the tag of each plain name stands."""
        return {plain(tag): n for n, tag in enumerate(self.tags)}

    def save(self, folder: Path) -> None:
        """Write it into the folder."""
        folder.mkdir(parents=True, exist_ok=True)
        scale = np.abs(self.things).max() / 127
        arrays: dict[str, Any] = {
            "things": np.round(self.things / scale).astype(np.int8),
            "scale": np.array([scale], np.float32),
            "has": np.round(self.has * 2).astype(np.uint8),
            **{name: getattr(self, name).astype(np.float16) for name in _ARRAYS},
            **{f"{net}_{n}": getattr(getattr(self, net), n).astype(np.float16) for net in _NETWORKS for n in _LAYERS},
        }
        np.savez_compressed(folder / ARRAYS, **arrays)
        (folder / NAMES).write_text("\n".join(self.names) + "\n", encoding="utf-8")
        notes = {name: getattr(self, name) for name in _NOTES} | {
            "tags": " ".join(t.replace(" ", "_") for t in self.tags),
            "ordinary": " ".join(sorted(self.ordinary)),
        }
        (folder / NOTES).write_text(json.dumps(notes, indent=2) + "\n", encoding="utf-8")

    @staticmethod
    def load(folder: Path) -> Knowledge:
        """Read what `save` wrote.

        Raises:
            ModelError: it is missing or broken.
        """
        try:
            notes = json.loads((folder / NOTES).read_text(encoding="utf-8"))
            names_read = tuple((folder / NAMES).read_text(encoding="utf-8").splitlines())
            with np.load(folder / ARRAYS) as stored:
                read = {name: stored[name].astype(np.float32) for name in stored.files}
            if not len(names_read) == len(read["things"]) == len(read["has"]):
                raise ValueError("its names and things differ in number")  # noqa: TRY301
            parts: dict[str, Any] = {
                **{name: read[name] for name in _ARRAYS},
                **{net: Network(*(read[f"{net}_{n}"] for n in _LAYERS)) for net in _NETWORKS},
                **{name: notes[name] for name in _NOTES},
            }
            return Knowledge(
                names=names_read,
                tags=tuple(tag.replace("_", " ") for tag in notes["tags"].split()),
                things=read["things"] * read["scale"],
                has=read["has"] / 2,
                ordinary=frozenset(notes["ordinary"].split()),
                **parts,
            )
        except Exception as error:  # a broken archive may raise anything
            told = f"{folder} holds no complete judge ({error}); get or train it again."
            raise ModelError(f"The suitability judge can't be used: {told}") from error


_ARRAYS = ("rules", "named", "offers", "mix")
_NETWORKS, _LAYERS = ("groups", "marks"), ("first", "second")
_NOTES = ("embedder", "threshold", "chosen_on")


@dataclass(frozen=True, slots=True, eq=False)
class _Fact:
    """What a fact rules out: `tags` (T,) how surely; and things by name, with embeddings (m, d) and how surely."""

    tags: Array
    names: tuple[str, ...]
    vectors: Array
    sure: Array


@dataclass(frozen=True, slots=True, eq=False)
class _Text:
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

    def touches(self, fact: _Fact) -> tuple[Array, Array]:
        """How surely the fact rules out each name: by its tags, and because the fact names it. Shapes (m,)."""
        named = np.zeros(len(self.names), np.float32)
        for name, vector, sure in zip(fact.names, fact.vectors, fact.sure, strict=True):
            same = np.array([other == name for other in self.names], np.float32)
            alike = np.clip((self.vectors @ vector - _OTHER) / (_ALIKE - _OTHER), 0, 1)
            named = np.maximum(named, sure * np.maximum(same, alike))
        return (self.tags * fact.tags).max(axis=1), named


@dataclass(eq=False)
class Suitability:
    """The judge. Safe to call from several threads; what it found of a fact or a text is kept.

    Raises:
        ModelError: what was learned belongs to another embedder.
    """

    knowledge: Knowledge
    embedder: Embedder
    _facts: LRUCache[str, _Fact] = field(default_factory=lambda: LRUCache(_KEPT))
    _texts: LRUCache[str, _Text] = field(default_factory=lambda: LRUCache(_KEPT))
    _vectors: LRUCache[str, Array] = field(default_factory=lambda: LRUCache(_KEPT_NAMES))
    _offers: LRUCache[str, float] = field(default_factory=lambda: LRUCache(_KEPT_NAMES))
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
        return [[self._weighed(found) for found in row] for row in self.signals(facts, texts, stop)]

    def rules_out(self, facts: Sequence[str], stop: Event) -> list[float]:
        """How surely each fact rules anything out, in [0, 1]; 0 for what wasn't read before `stop` was set."""
        told = self._read(self._facts, facts, self._ruled, stop)
        return [float(max(fact.tags.max(), fact.sure.max(initial=0.0))) if fact else 0.0 for fact in told]

    def signals(self, facts: Sequence[str], texts: Sequence[str], stop: Event) -> Array:
        """What is weighed for each pair; training learns the weights. Shape (facts, texts, 3)."""
        rows = np.zeros((len(facts), len(texts), _SIGNALS), np.float32)
        told = self._read(self._facts, facts, self._ruled, stop)
        ruling = {n: fact for n, fact in enumerate(told) if fact and (fact.tags.any() or fact.names)}
        held = self._read(self._texts, texts, self._held, stop) if ruling else []
        touched = {
            (n, place): text.touches(fact)
            for place, text in enumerate(held)
            for n, fact in ruling.items()
            if text is not None
        }
        offered = self._offered(
            shown
            for (_, place), (tags, named) in touched.items()
            if (text := held[place])
            for shown, touch in zip(text.shown, np.maximum(tags, named), strict=True)
            if touch >= _FAINT
        )
        for (n, place), (tags, named) in touched.items():
            if text := held[place]:
                rows[n, place] = _signals(ruling[n], text, tags, named, offered)
        return rows

    def _weighed(self, found: Array) -> float:
        if not found.any():
            return 0.0
        return float(_sigmoid(_linear(shape(found)[None], self.knowledge.mix[None]))[0, 0])

    def _read(
        self, kept: LRUCache[str, T], texts: Sequence[str], look: Callable[[Sequence[str]], list[T]], stop: Event
    ) -> list[T | None]:
        """What was found of each text, looked for once and several together; None for an empty one, or when stopped."""
        keys = [" ".join(text.split()) for text in texts]
        with self._lock:
            found = {key: kept[key] for key in keys if key in kept}
        new = [key for key in dict.fromkeys(keys) if key and key not in found]
        for start in range(0, len(new), _TOGETHER):
            if stop.is_set():
                break
            some = new[start : start + _TOGETHER]
            found |= dict(zip(some, look(some), strict=True))
        with self._lock:
            kept.update(found)
        return [found.get(key) for key in keys]

    def _ruled(self, facts: Sequence[str]) -> list[_Fact]:
        """What facts rule out."""
        know = self.knowledge
        likely = know.groups(self.embedder.encode(facts))
        told = [[name for name in names(fact, know.places) if name.known or self._odd(name)] for fact in facts]
        shown = [hidden(fact, name) for fact, some in zip(facts, told, strict=True) for name in some]
        sure = _sigmoid(_linear(self.embedder.encode(shown), know.named[None]))[:, 0] if shown else know.named[:0]
        found = []
        for probable, some in zip(likely, told, strict=True):
            mine, sure = sure[: len(some)], sure[len(some) :]
            tags = (probable[:, None] * know.rules).max(axis=0)
            for name, share in zip(some, mine, strict=True):
                if (tag := know.tag_places.get(name.plain)) is not None:
                    tags[tag] = max(tags[tag], share)
            vectors = self._encoded([name.text for name in some])
            found.append(_Fact(_clear(tags), tuple(name.plain for name in some), vectors, mine))
        return found

    def _odd(self, name: Name) -> bool:
        """Whether no word of an unknown name is one that facts often have."""
        return not set(name.plain.split()) & self.knowledge.ordinary

    def _held(self, texts: Sequence[str]) -> list[_Text]:
        """What texts hold."""
        know = self.knowledge
        rows = [names(text, know.places) for text in texts]
        together = self._encoded([name.text for some in rows for name in some])
        guessed = self._likely(together)
        whole = self.embedder.encode(texts)
        offers = _sigmoid(_linear(whole, know.offers[None]))[:, 0]
        found = []
        for text, some, tags, sure in zip(texts, rows, know.marks(whole), offers, strict=True):
            vectors, together = together[: len(some)], together[len(some) :]
            likely, guessed = guessed[: len(some)], guessed[len(some) :]
            known = self._known(some)
            for n, name in enumerate(some):
                if name.known:
                    likely[n] = known[n]
            kept = [n for n, name in enumerate(some) if name.known or likely[n].max() >= 2 * _FAINT]
            shown = tuple(hidden(text, some[n]) for n in kept)
            plain_names = tuple(some[n].plain for n in kept)
            found.append(_Text(plain_names, vectors[kept], likely[kept], tags, shown, float(sure)))
        return found

    def _offered(self, shown: Iterable[str]) -> dict[str, float]:
        """How surely each text offers the name that is hidden in it."""
        wanted = list(dict.fromkeys(shown))
        with self._lock:
            found = {text: self._offers[text] for text in wanted if text in self._offers}
        new = [text for text in wanted if text not in found]
        if new:
            sure = _sigmoid(_linear(self.embedder.encode(new), self.knowledge.offers[None]))[:, 0]
            found |= dict(zip(new, sure.tolist(), strict=True))
        with self._lock:
            self._offers.update(found)
        return found

    def _known(self, some: Sequence[Name]) -> Array:
        """The tags (m, T) of names that are known, 0 for others."""
        know = self.knowledge
        found = np.zeros((len(some), len(know.tags)), np.float32)
        for n, name in enumerate(some):
            for place in know.places.get(name.plain, ()):
                found[n] = np.maximum(found[n], know.has[place])
        return found

    def _likely(self, vectors: Array) -> Array:
        """Tags (m, T) of names by what they are near to."""
        know = self.knowledge
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
        with self._lock:
            known = {text: self._vectors[text] for text in some if text in self._vectors}
        new = list(dict.fromkeys(text for text in some if text not in known))
        known |= dict(zip(new, self.embedder.encode(new), strict=True))
        with self._lock:
            self._vectors.update(known)
        return np.stack([known[text] for text in some]) if some else self.knowledge.things[:0]


_SIGNALS = 3


def _signals(fact: _Fact, text: _Text, tags: Array, named: Array, offered: Mapping[str, float]) -> Array:
    """What speaks for a clash, each in [0, 1]: the tags of names, those of the whole text, and names in both."""
    sure = np.array([offered.get(shown, 0.0) for shown in text.shown], np.float32)
    return np.array(
        [
            (tags * sure).max(initial=0.0),
            (text.whole * fact.tags).max(initial=0.0) * text.offers,
            (named * sure).max(initial=0.0),
        ],
        np.float32,
    )


def shape(found: Array) -> Array:
    """Signals as the logistic curve takes them: small ones spread out. Shape of `found`."""
    spread: Array = np.sqrt(np.asarray(found, np.float32))
    return spread


def _clear(tags: Array) -> Array:
    return np.where(tags >= _FAINT, tags, 0).astype(np.float32)


def _linear(vectors: Array, weights: Array) -> Array:
    found: Array = np.asarray(vectors @ weights[:, :-1].T + weights[:, -1])
    return found


def _sigmoid(logits: Array) -> Array:
    found: Array = np.asarray(1 / (1 + np.exp(-np.clip(logits, -30, 30))), np.float32)
    return found
