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

from assistant.experiment.measures import classification_measures
from assistant.judges.suitability.knowledge import Knowledge
from assistant.judges.suitability.names import hidden, names, plain
from assistant.judges.suitability.tags import ByTags, shape
from assistant.protocols import Embedder
from assistant.training.suitability.networks import fit_logistic_curve, train_network
from assistant.training.suitability.pairs import Pair, capitalised, fill_frame, make_pairs, within_sentence
from assistant.training.suitability.tables import Item, Part, Tables, Tags, load_tables

Array = NDArray[np.float32]

# Development and test pairs: of known groups of facts in new wordings, with things that training has and ones that it
# lacks; and of groups that training lacks.
FAMILIAR_PAIRS, KNOWN_PAIRS, NEW_PAIRS = 600, 600, 400
# The share that may be taken for a clash of development pairs without one, and of those whose facts rule nothing out.
MAX_FALSE_ALARMS, MAX_IDLE_ALARMS = 0.04, 0.01
# What counts for a tag that some of its kind have, and for one that a fact may rule out.
UNSURE_WEIGHT, MAYBE_WEIGHT = 0.5, 0.15
# Passes over the facts and over the things, and how far each vector is shaken.
FACT_EPOCHS, THING_EPOCHS, NOISE = 50, 40, 0.1
# So many facts of two, and for each kind so many that name a thing.
MIXED_FACTS, NAMING_FACTS = 2000, 400
# A word that so many facts have names nothing.
COMMON_FROM = 3
# Each frame of a sentence is filled so often; for each kind so many of them are whole examples of what has a tag.
FILLS_PER_FRAME, WHOLE_EXAMPLES = 2, 250


def held_out_pairs(part: Part, seed: int) -> dict[str, list[Pair]]:
    """The pairs of "dev" or "test", all facts and sentences of which are new, as most things are.

    `familiar` are of groups and things that training has, `known` of groups that it has, and `new` of neither.
    """
    known_tables, new_tables = load_tables(part, seed, known=True), load_tables(part, seed)
    familiar_tables = replace(known_tables, items=load_tables("train", seed).items)
    return {
        "familiar": make_pairs(familiar_tables, FAMILIAR_PAIRS, seed),
        "known": make_pairs(known_tables, KNOWN_PAIRS, seed + 1),
        "new": make_pairs(new_tables, NEW_PAIRS, seed + 2),
    }


def train(folder: Path, embedder: Embedder, seed: int) -> dict[str, Any]:
    """Teach the judge all tables, and write it into the folder; what one that was taught a part of them came to.

    Returns:
        {"threshold": t, "test": {"familiar": {pairs, auc, precision, recall, false_alarms}, "known": ..., "new": ...}}
    """
    dev_pairs = [pair for pairs in held_out_pairs("dev", seed).values() for pair in pairs]
    part_knowledge = teach(load_tables("train", seed), embedder, seed)
    part_judge = ByTags(with_fitted_mix(part_knowledge, embedder, dev_pairs), embedder)
    description = (
        f"the recipe's development pairs, seed {seed}: at most {MAX_FALSE_ALARMS:.0%} of those without a clash "
        f"count as one, and {MAX_IDLE_ALARMS:.0%} of those whose facts rule nothing out"
    )
    threshold = threshold_of(dev_pairs, _scores(part_judge, dev_pairs))
    full_knowledge = teach(load_tables("all", seed), embedder, seed)
    replace(full_knowledge, mix=part_judge.knowledge.mix, threshold=threshold, chosen_on=description).save(folder)
    test_pairs = held_out_pairs("test", seed)
    measures = {name: _measured(part_judge, pairs, threshold) for name, pairs in test_pairs.items()}
    return {"threshold": threshold, "test": measures}


def with_fitted_mix(knowledge: Knowledge, embedder: Embedder, dev: Sequence[Pair]) -> Knowledge:
    """The same, with what is learned from development pairs: how much each signal says."""
    judge = ByTags(knowledge, embedder)
    signals = np.stack([shape(judge.signals([pair.fact], [pair.text], Event())[0, 0]) for pair in dev])
    return replace(knowledge, mix=fit_logistic_curve(signals, [pair.clash for pair in dev]))


def teach(tables: Tables, embedder: Embedder, seed: int) -> Knowledge:
    """What these tables teach; the weights of the signals and the threshold are yet to be learned."""
    lesson = _Lesson(tables, embedder, seed)
    return Knowledge(
        groups=lesson.groups(),
        rules=np.array([_row(group.clash, lesson.tags, MAYBE_WEIGHT) for group in tables.groups], np.float32),
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
        table = self.tables.ingredients
        ingredients = (Item(name, "food", table.tags.get(name, Tags(frozenset()))) for name in table.names)
        items_by_name: dict[str, Item] = {}
        for item in (*self.tables.items, *self.tables.free, *ingredients):
            items_by_name.setdefault(item.name, item)
        return list(items_by_name.values())

    @cached_property
    def known(self) -> dict[str, Tags]:
        """The tags of each plain name."""
        tags_by_name: dict[str, Tags] = {}
        for item in self.items:
            plain_name = plain(item.name)
            tags_by_name[plain_name] = tags_by_name.get(plain_name, Tags(frozenset())) | item.tags
        return tags_by_name

    @cached_property
    def tags(self) -> tuple[str, ...]:
        """All tags, in order."""
        item_tags = {tag for item in self.items for tag in item.tags.sure | item.tags.unsure}
        clash_tags = {tag for group in self.tables.groups for tag in group.clash.sure | group.clash.unsure}
        return tuple(sorted(item_tags | clash_tags))

    @cached_property
    def things(self) -> Array:
        """Embeddings of the items."""
        return self.embedder.encode([item.name for item in self.items])

    @cached_property
    def has(self) -> Array:
        """Which tags the items have."""
        return np.array([_row(item.tags, self.tags, UNSURE_WEIGHT) for item in self.items], np.float32)

    def random(self) -> Random:
        """Chance, the same for each part of the lesson."""
        return Random(self.seed)  # noqa: S311 - training data, not a secret

    def groups(self) -> Any:
        """The network that tells which groups a fact belongs to: alone, or along with another fact."""
        groups, random = self.tables.groups, self.random()
        wordings = [(wording, n) for n, group in enumerate(groups) for wording in group.wordings]
        idle_texts = [*(text for group in groups for text in group.opposite), *self.tables.harmless]
        one_hot = np.eye(len(groups), dtype=np.float32)
        rows = [one_hot[n] for _, n in wordings] + [np.zeros(len(groups), np.float32)] * len(idle_texts)
        texts = [*(wording for wording, _ in wordings), *idle_texts]
        mixed_texts, labels = [], []
        for _ in range(MIXED_FACTS):
            first, second = random.randrange(len(wordings)), random.randrange(len(texts))
            frame = random.choice(("{} and {}", "{}, {}", "{} but {}", "{}. {}"))
            mixed_texts.append(frame.format(texts[first].rstrip("."), within_sentence(texts[second])))
            labels.append(np.maximum(rows[first], rows[second]))
        named_facts, named_labels = self._named_facts(random)
        vectors = self.embedder.encode([*texts, *mixed_texts, *named_facts])
        return train_network(
            vectors, np.array([*rows, *labels, *named_labels], np.float32), FACT_EPOCHS, self.seed, NOISE
        )

    def _named_facts(self, random: Random) -> tuple[list[str], list[Array]]:
        """Facts about one thing: no group has them, but where one rules out what the thing has, nobody can tell."""
        groups, texts, rows = self.tables.groups, [], []
        for kind, naming in self.tables.naming.items():
            items = [item for item in self.items if item.kind == kind]
            for wordings, rules_out in ((naming.facts, True), (naming.opposites, False)):
                for _ in range(NAMING_FACTS if items and wordings else 0):
                    item = random.choice(items)
                    texts.append(capitalised(random.choice(wordings).format(i=item.name)))
                    unsure = [rules_out and group.clashes(item.tags) is not False for group in groups]
                    rows.append(np.where(unsure, np.nan, 0).astype(np.float32))
        return texts, rows

    def marks(self) -> Any:
        """The network that tells which tags a name or a text has."""
        random, texts = self.random(), list[str]()
        rows: list[Array] = []
        for kind, frames in self.tables.frames.items():
            items = [item for item in self.tables.items if item.kind == kind]
            for _ in range(WHOLE_EXAMPLES if len(items) > 2 and frames.offers else 0):
                item = random.choice(items)
                texts.append(fill_frame(random.choice(frames.offers), item))
                rows.append(np.array(_row(item.tags, self.tags, UNSURE_WEIGHT), np.float32))
        for item in self.tables.offers:
            texts.append(item.name)
            rows.append(np.array(_row(item.tags, self.tags, UNSURE_WEIGHT), np.float32))
        unknown_names = sorted(self._unknown_names())
        texts += unknown_names
        rows += [np.zeros(len(self.tags), np.float32)] * len(unknown_names)
        vectors = np.concatenate([self.things, self.embedder.encode(texts)])
        return train_network(vectors, np.concatenate([self.has, np.array(rows)]), THING_EPOCHS, self.seed, NOISE)

    def _unknown_names(self) -> set[str]:
        """Words of frames, facts and sentences that name nothing known."""
        frames = self.tables.frames.values()
        texts = [text for frame in frames for text in (*frame.offers, *frame.refusals, *frame.told)]
        texts += self.tables.harmless
        unknown_texts = {name.text for text in texts for name in names(text, self.known) if not name.known}
        return {text for text in unknown_texts if "{" not in text and len(text) > 2}

    def ordinary(self) -> frozenset[str]:
        """Plain words that several facts have and that name nothing known."""
        groups = self.tables.groups
        facts = [*(text for group in groups for text in (*group.wordings, *group.opposite)), *self.tables.harmless]
        facts += [fact for naming in self.tables.naming.values() for fact in (*naming.facts, *naming.opposites)]
        fact_counts = Counter(
            word for fact in facts for word in {name.plain for name in names(fact, ()) if " " not in name.plain}
        )
        return frozenset(word for word, count in fact_counts.items() if count >= COMMON_FROM and word not in self.known)

    def named(self) -> Array:
        """The curve that tells whether a fact rules out a thing which it names, with the name hidden."""
        rows: list[tuple[str, bool]] = []
        for naming in self.tables.naming.values():
            for facts, rules_out in ((naming.facts, True), (naming.opposites, False)):
                rows += [(capitalised(fact.format(i="this")), rules_out) for fact in facts]
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
            items = [item for item in self.tables.items if item.kind == kind]
            if len(items) < 3:
                continue
            for kind_frames, offered_slots in (
                (frames.offers, "x"),
                (frames.lists, "xyz"),
                (frames.turned, "x"),
                (frames.refusals, "y"),
                (frames.told, ""),
            ):
                for frame in kind_frames:
                    for slot in (slot for slot in "xyz" if f"{{{slot}}}" in frame or f"{{{slot.upper()}}}" in frame):
                        for _ in range(FILLS_PER_FRAME):
                            drawn_items = random.sample(items, 3)
                            drawn_items["xyz".index(slot)] = replace(drawn_items["xyz".index(slot)], name="this")
                            yield fill_frame(frame, *drawn_items), slot in offered_slots
                    if offered_slots != "y":
                        yield fill_frame(frame, *random.sample(items, 3)), offered_slots != ""

    def _hidden(self, text: str) -> list[tuple[str, Tags]]:
        """The text with each known name hidden in turn, with the tags of what was hidden."""
        return [(hidden(text, name), self.known[name.plain]) for name in names(text, self.known) if name.known]

    def _curve(self, rows: Sequence[tuple[str, bool]]) -> Array:
        texts, labels = zip(*rows, strict=True)
        return fit_logistic_curve(self.embedder.encode(texts), labels, "balanced")


def _row(tags: Tags, all_tags: Sequence[str], unsure: float) -> list[float]:
    return [1.0 if tag in tags.sure else unsure if tag in tags.unsure else 0.0 for tag in all_tags]


# Recipes whose facts rule nothing out.
_IDLE_RECIPES = ("harmless", "opposite")


def threshold_of(dev: Sequence[Pair], scores: Sequence[float]) -> float:
    """The lowest with few enough false alarms, over all pairs without a clash and over facts that rule nothing out."""
    negative_scores = [score for pair, score in zip(dev, scores, strict=True) if not pair.clash]
    idle_scores = [score for pair, score in zip(dev, scores, strict=True) if pair.recipe in _IDLE_RECIPES]
    threshold = float(np.quantile(negative_scores, 1 - MAX_FALSE_ALARMS))
    return max(threshold, float(np.quantile(idle_scores, 1 - MAX_IDLE_ALARMS))) if idle_scores else threshold


def _scores(judge: ByTags, pairs: Sequence[Pair]) -> list[float]:
    return [judge.clashes([pair.fact], [pair.text], Event())[0][0] for pair in pairs]


def _measured(judge: ByTags, pairs: Sequence[Pair], threshold: float) -> dict[str, float]:
    measures = classification_measures([pair.clash for pair in pairs], _scores(judge, pairs), threshold)
    measure_names = ("auc", "precision", "recall", "false_alarms")
    return {"pairs": len(pairs), **{name: measures[name] or 0.0 for name in measure_names}}
