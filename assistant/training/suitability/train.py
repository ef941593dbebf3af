"""Teaches the suitability judge its tables; how its parts are weighed is learned from held-out pairs of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from random import Random
from threading import Event
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from assistant.experiment.measures import told_apart
from assistant.judges.suitability.knowledge import Knowledge
from assistant.judges.suitability.names import hidden, names, plain
from assistant.judges.suitability.tags import ByTags, shape
from assistant.protocols import Embedder
from assistant.training.suitability.networks import curve, network
from assistant.training.suitability.pairs import Pair, fill, make
from assistant.training.suitability.tables import Item, Part, Tables, Tags, load

Array = NDArray[np.float32]

# Development and test pairs: of known groups of facts in new wordings, with things that training has and ones that it
# lacks; and of groups that training lacks.
FAMILIAR, KNOWN, NEW = 600, 600, 400
# The share that may be taken for a clash of development pairs without one, and of those whose facts rule nothing out.
FALSE_ALARMS, IDLE_ALARMS = 0.04, 0.01
# What counts for a tag that some of its kind have, and for one that a fact may rule out.
UNSURE, MAYBE = 0.5, 0.15
# Passes over the facts and over the things, and how far each vector is shaken.
FACT_EPOCHS, THING_EPOCHS, NOISE = 50, 40, 0.1
# So many facts of two, and for each kind so many that name a thing.
MIXED, NAMED = 2000, 400
# A word that so many facts have names nothing.
COMMON = 3
# Each frame of a sentence is filled so often; for each kind so many of them are whole examples of what has a tag.
FILLED, WHOLE = 2, 250


def held_out(part: Part, seed: int) -> dict[str, list[Pair]]:
    """The pairs of "dev" or "test", all facts and sentences of which are new, as most things are.

    `familiar` are of groups and things that training has, `known` of groups that it has, and `new` of neither.
    """
    known, new = load(part, seed, known=True), load(part, seed)
    familiar = replace(known, items=load("train", seed).items)
    return {
        "familiar": make(familiar, FAMILIAR, seed),
        "known": make(known, KNOWN, seed + 1),
        "new": make(new, NEW, seed + 2),
    }


def train(folder: Path, embedder: Embedder, seed: int) -> dict[str, Any]:
    """Teach the judge all tables, and write it into the folder; what one that was taught a part of them came to.

    Returns:
        {"threshold": t, "test": {"familiar": {pairs, auc, precision, recall, false_alarms}, "known": ..., "new": ...}}
    """
    dev = [pair for some in held_out("dev", seed).values() for pair in some]
    part = ByTags(weighed(taught(load("train", seed), embedder, seed), embedder, dev), embedder)
    about = (
        f"the recipe's development pairs, seed {seed}: at most {FALSE_ALARMS:.0%} of those without a clash "
        f"count as one, and {IDLE_ALARMS:.0%} of those whose facts rule nothing out"
    )
    threshold = threshold_of(dev, _scores(part, dev))
    whole = taught(load("all", seed), embedder, seed)
    replace(whole, mix=part.knowledge.mix, threshold=threshold, chosen_on=about).save(folder)
    test = {name: _measured(part, some, threshold) for name, some in held_out("test", seed).items()}
    return {"threshold": threshold, "test": test}


def weighed(knowledge: Knowledge, embedder: Embedder, dev: Sequence[Pair]) -> Knowledge:
    """The same, with what is learned from development pairs: how much each signal says."""
    judge = ByTags(knowledge, embedder)
    found = np.stack([shape(judge.signals([pair.fact], [pair.text], Event())[0, 0]) for pair in dev])
    fitted = LogisticRegression(C=10, max_iter=1000).fit(found, [pair.clash for pair in dev])
    return replace(knowledge, mix=np.append(fitted.coef_[0], fitted.intercept_).astype(np.float32))


def taught(tables: Tables, embedder: Embedder, seed: int) -> Knowledge:
    """What these tables teach; the weights of the signals and the threshold are yet to be learned."""
    lesson = _Lesson(tables, embedder, seed)
    return Knowledge(
        groups=lesson.groups(),
        rules=np.array([_row(one.clash, lesson.tags, MAYBE) for one in tables.groups], np.float32),
        names=tuple(item.name for item in lesson.items),
        tags=lesson.tags,
        things=lesson.things,
        has=lesson.has,
        marks=lesson.marks(),
        named=lesson.named(),
        offers=lesson.offers(),
        mix=np.ones(4, np.float32),
        ordinary=lesson.ordinary(),
        embedder=embedder.name,
        threshold=0.5,
        chosen_on="nothing yet",
    )


@dataclass(frozen=True)
class _Lesson:
    """One part of the tables, and what is learned from it."""

    tables: Tables
    embedder: Embedder
    seed: int

    @cached_property
    def items(self) -> list[Item]:
        """Things by name: those of the tables, and single ingredients."""
        known = self.tables.ingredients
        ingredients = (Item(name, "food", known.tags.get(name, Tags(frozenset()))) for name in known.names)
        found: dict[str, Item] = {}
        for item in (*self.tables.items, *self.tables.free, *ingredients):
            found.setdefault(item.name, item)
        return list(found.values())

    @cached_property
    def known(self) -> dict[str, Tags]:
        """The tags of each plain name."""
        found: dict[str, Tags] = {}
        for item in self.items:
            key = plain(item.name)
            found[key] = found.get(key, Tags(frozenset())) | item.tags
        return found

    @cached_property
    def tags(self) -> tuple[str, ...]:
        """All tags, in order."""
        mine = {tag for item in self.items for tag in item.tags.sure | item.tags.unsure}
        ruled = {tag for group in self.tables.groups for tag in group.clash.sure | group.clash.unsure}
        return tuple(sorted(mine | ruled))

    @cached_property
    def things(self) -> Array:
        """Embeddings of the items."""
        return self.embedder.encode([item.name for item in self.items])

    @cached_property
    def has(self) -> Array:
        """Which tags the items have."""
        return np.array([_row(item.tags, self.tags, UNSURE) for item in self.items], np.float32)

    def random(self) -> Random:
        """Chance, the same for each part of the lesson."""
        return Random(self.seed)  # noqa: S311 - training data, not a secret

    def groups(self) -> Any:
        """The network that tells which groups a fact belongs to: alone, or along with another fact."""
        groups, random = self.tables.groups, self.random()
        told = [(wording, n) for n, group in enumerate(groups) for wording in group.wordings]
        idle = [*(text for group in groups for text in group.opposite), *self.tables.harmless]
        rows = [_one_hot(n, len(groups)) for _, n in told] + [np.zeros(len(groups), np.float32)] * len(idle)
        texts = [*(wording for wording, _ in told), *idle]
        mixed, labels = [], []
        for _ in range(MIXED):
            one, other = random.randrange(len(told)), random.randrange(len(texts))
            joined = random.choice(("{} and {}", "{}, {}", "{} but {}", "{}. {}")).format(
                texts[one].rstrip("."), _inner(texts[other])
            )
            mixed.append(joined)
            labels.append(np.maximum(rows[one], rows[other]))
        named, ignored = self._named_facts(random)
        vectors = self.embedder.encode([*texts, *mixed, *named])
        return network(vectors, np.array([*rows, *labels, *ignored], np.float32), FACT_EPOCHS, self.seed, NOISE)

    def _named_facts(self, random: Random) -> tuple[list[str], list[Array]]:
        """Facts about one thing: no group has them, but where one rules out what the thing has, nobody can tell."""
        groups, texts, rows = self.tables.groups, [], []
        for kind, naming in self.tables.naming.items():
            some = [item for item in self.items if item.kind == kind]
            for fact, rules in ((naming.facts, True), (naming.opposites, False)):
                for _ in range(NAMED if some and fact else 0):
                    item = random.choice(some)
                    texts.append(_capital(random.choice(fact).format(i=item.name)))
                    unsure = [rules and group.clashes(item.tags) is not False for group in groups]
                    rows.append(np.where(unsure, np.nan, 0).astype(np.float32))
        return texts, rows

    def marks(self) -> Any:
        """The network that tells which tags a name or a text has."""
        random, texts = self.random(), list[str]()
        rows: list[Array] = []
        for kind, frames in self.tables.frames.items():
            some = [item for item in self.tables.items if item.kind == kind]
            for _ in range(WHOLE if len(some) > 2 and frames.offers else 0):
                item = random.choice(some)
                texts.append(fill(random.choice(frames.offers), item))
                rows.append(np.array(_row(item.tags, self.tags, UNSURE), np.float32))
        for item in self.tables.offers:
            texts.append(item.name)
            rows.append(np.array(_row(item.tags, self.tags, UNSURE), np.float32))
        nothing = sorted(self._nothing())
        texts += nothing
        rows += [np.zeros(len(self.tags), np.float32)] * len(nothing)
        vectors = np.concatenate([self.things, self.embedder.encode(texts)])
        return network(vectors, np.concatenate([self.has, np.array(rows)]), THING_EPOCHS, self.seed, NOISE)

    def _nothing(self) -> set[str]:
        """Words of frames, facts and sentences that name nothing known."""
        frames = (frame for one in self.tables.frames.values() for frame in (*one.offers, *one.refusals, *one.told))
        texts = (*frames, *self.tables.harmless)
        found = {name.text for text in texts for name in names(text, self.known) if not name.known}
        return {text for text in found if "{" not in text and len(text) > 2 and text.lower() not in {"x", "y", "z"}}

    def ordinary(self) -> frozenset[str]:
        """Plain words that several facts have and that name nothing known."""
        groups = self.tables.groups
        facts = [*(text for group in groups for text in (*group.wordings, *group.opposite)), *self.tables.harmless]
        facts += [fact for naming in self.tables.naming.values() for fact in (*naming.facts, *naming.opposites)]
        told = Counter(
            word for fact in facts for word in {name.plain for name in names(fact, ()) if " " not in name.plain}
        )
        return frozenset(word for word, count in told.items() if count >= COMMON and word not in self.known)

    def named(self) -> Array:
        """The curve that tells whether a fact rules out a thing which it names, with the name hidden."""
        rows: list[tuple[str, bool]] = []
        for naming in self.tables.naming.values():
            for facts, rules in ((naming.facts, True), (naming.opposites, False)):
                rows += [(_capital(fact.format(i="this")), rules) for fact in facts]
        for group in self.tables.groups:
            for wording in group.wordings:
                rows += [
                    (text, group.clash.sure & tags.sure != set())
                    for text, tags in self._hidden(wording)
                    if tags.sure & group.clash.sure or not tags.sure & group.clash.unsure
                ]
            rows += [(text, False) for wording in group.opposite for text, _ in self._hidden(wording)]
        rows += [(text, False) for fact in self.tables.harmless for text, _ in self._hidden(fact)]
        return self._curve(rows)

    def offers(self) -> Array:
        """The curve that tells whether a text offers what it names, with the name hidden, or anything at all."""
        rows = list(self._framed())
        for item in self.tables.offers:
            rows += [(text, True) for text, tags in self._hidden(item.name) if tags.sure & item.tags.sure]
            rows.append((item.name, True))
        for idle in self.tables.idle:
            rows += [(text, False) for text, _ in self._hidden(idle)] + [(idle, False)]
        rows += [("this", True), ("This.", True)]
        return self._curve(rows)

    def _framed(self) -> Iterator[tuple[str, bool]]:
        """Frames with one name hidden, and whether that is offered; and whole ones, whether they offer anything."""
        random = self.random()
        for kind, frames in self.tables.frames.items():
            some = [item for item in self.tables.items if item.kind == kind]
            if len(some) < 3:
                continue
            for some_frames, offered in (
                (frames.offers, "x"),
                (frames.lists, "xyz"),
                (frames.turned, "x"),
                (frames.refusals, "y"),
                (frames.told, ""),
            ):
                for frame in some_frames:
                    for slot in (slot for slot in "xyz" if f"{{{slot}}}" in frame or f"{{{slot.upper()}}}" in frame):
                        for _ in range(FILLED):
                            things = random.sample(some, 3)
                            named = [
                                replace(one, name="this") if key == slot else one
                                for key, one in zip("xyz", things, strict=True)
                            ]
                            yield fill(frame, *named), slot in offered
                    if offered != "y":
                        yield fill(frame, *random.sample(some, 3)), offered != ""

    def _hidden(self, text: str) -> list[tuple[str, Tags]]:
        """The text with each known name hidden in turn, with the tags of what was hidden."""
        return [(hidden(text, name), self.known[name.plain]) for name in names(text, self.known) if name.known]

    def _curve(self, rows: Sequence[tuple[str, bool]]) -> Array:
        return curve(self.embedder.encode([text for text, _ in rows]), [label for _, label in rows])


def _inner(fact: str) -> str:
    return fact if fact.startswith(("I ", "I'")) else fact[:1].lower() + fact[1:]


def _one_hot(n: int, count: int) -> Array:
    row = np.zeros(count, np.float32)
    row[n] = 1
    return row


def _row(tags: Tags, every: Sequence[str], unsure: float) -> list[float]:
    return [1.0 if tag in tags.sure else unsure if tag in tags.unsure else 0.0 for tag in every]


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


# Recipes whose facts rule nothing out.
_IDLE = ("harmless", "opposite")


def threshold_of(dev: Sequence[Pair], scores: Sequence[float]) -> float:
    """The lowest with few enough false alarms, over all pairs without a clash and over facts that rule nothing out."""
    calm = [score for pair, score in zip(dev, scores, strict=True) if not pair.clash]
    idle = [score for pair, score in zip(dev, scores, strict=True) if pair.recipe in _IDLE]
    shares = [
        float(np.quantile(calm, 1 - FALSE_ALARMS)),
        *([float(np.quantile(idle, 1 - IDLE_ALARMS))] if idle else []),
    ]
    return max(shares)


def _scores(judge: ByTags, pairs: Sequence[Pair]) -> list[float]:
    return [judge.clashes([pair.fact], [pair.text], Event())[0][0] for pair in pairs]


def _measured(judge: ByTags, pairs: Sequence[Pair], threshold: float) -> dict[str, float]:
    apart = told_apart([pair.clash for pair in pairs], _scores(judge, pairs), threshold)
    told = ("auc", "precision", "recall", "false_alarms")
    return {"pairs": len(pairs), **{name: apart[name] or 0.0 for name in told}}
