"""Makes pairs of fact and text whose texts are written as a model replies.

A model names several things at once, tells the fact again ("If you're vegan, ..."), claims that all of it suits, and
calls things after the fact ("a vegan omelette"). None of that says whether what it offers clashes: here it stands
beside things that clash and things that don't, equally often. The tables decide the label, as in `pairs.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random
from string import Formatter, punctuation
from typing import Any

from assistant.training.suitability.pairs import Pair, capitalised, draw_distinct, uncapitalised
from assistant.training.suitability.tables import Group, Item, Tables, Tags, read_table

# Things that one reply offers, at most.
MAX_OFFERED = 4
# One of so many things is called after what it is made without.
ADAPTED_ONE_IN = 4
# Things that are drawn for one that fits.
TRIES = 20
# What becomes of a person's words where they are said to that person, and of people.
_SECOND_PERSON = {
    "i": "you", "i'm": "you're", "im": "you're", "i've": "you've", "i'd": "you'd", "am": "are", "my": "your",
    "me": "you", "mine": "yours", "myself": "yourself", "we": "you", "our": "your", "us": "you",
}  # fmt: skip
_THIRD_PERSON = {"you": "they", "you're": "they're", "you've": "they've", "your": "their", "yours": "theirs"}
_FIRST_PERSON = ("i", "i'm", "im", "i've", "i'd", "my", "we", "our")
_OPENING_VERBS = {"you": "", "you're": "are", "you've": "have"}
# How often each kind of frame is drawn, and how often for a clash.
_FRAME_KINDS = {
    "offers": (26, 0.5), "repeating": (46, 0.5), "sparing": (14, 0.5), "warning": (6, 0.0), "around": (8, 0.0)
}  # fmt: skip
_ARTICLES = ("a", "an", "the", "some")


def make_replies(tables: Tables, count: int, seed: int) -> list[Pair]:
    """So many different pairs, in an order drawn by the seed.

    Raises:
        ValueError: the tables are too small for so many.
    """
    return draw_distinct(_Replies(tables, Random(seed)).draw, count)  # noqa: S311 - training data, not a secret


def to_you(fact: str) -> str:
    """A fact of oneself as it is said to that person: "I'm vegan." is "you're vegan"; "" for one of another form."""
    text = fact.strip().rstrip(".!")
    if text.split(" ")[0].lower() not in _FIRST_PERSON:
        return ""
    return _reworded(_SECOND_PERSON, uncapitalised(text.replace("I was ", "I were ")))


def of_people(fact: str) -> str:
    """The same as it is said of people, behind "who": "are vegan"; "" for one of another form."""
    first_word, _, remainder = to_you(fact).partition(" ")
    if first_word not in _OPENING_VERBS or not remainder:
        return ""
    return f"{_OPENING_VERBS[first_word]} {_reworded(_THIRD_PERSON, remainder)}".strip()


def _reworded(table: Mapping[str, str], text: str) -> str:
    """The text with the words of the table in place of those that they stand for."""

    def instead(word: str) -> str:
        bare_word = word.strip(punctuation)
        return word.replace(bare_word, table.get(bare_word.lower(), bare_word)) if bare_word else word

    return " ".join(map(instead, text.split(" ")))


class _Replies:
    """Draws pairs; None where a draw can't be labelled or said."""

    def __init__(self, tables: Tables, random: Random) -> None:
        self._tables, self._random, self._table = tables, random, read_table("replies")
        self._items = {kind: [item for item in tables.items if item.kind == kind] for kind in tables.frames}
        self._known: dict[tuple[str, str], list[Item]] = {}
        self._adapted = {
            word: (Tags.parse(row["without"]).sure, row["kinds"].split())
            for word, row in self._table["adapted"].items()
        }

    def draw(self) -> Pair | None:
        """A pair, of which a bit less than half clash."""
        group = self._random.choice(self._tables.groups)
        kind = self._draw_kind(group)
        frame_kind = self._random.choices(list(_FRAME_KINDS), [weight for weight, _ in _FRAME_KINDS.values()])[0]
        frame = self._random.choice(self._frames(kind, frame_kind))
        clash = self._random.random() < _FRAME_KINDS[frame_kind][1]
        offered = self._offered(group, kind, clash)
        refused = self._draw_item(group, kind, clash=True)
        fact = self._random.choice(group.wordings)
        words = {
            "o": self._random.choice(self._frames(kind, "occasions")),
            "n": _split_article(refused.name)[1] if refused else "",
            "you": to_you(fact),
            "who": of_people(fact),
            **({"l": _joined(offered, "or"), "a": _joined(offered, "and")} if offered else {}),
        }
        words |= {key.upper(): capitalised(word) for key, word in words.items()}
        if any(not words.get(key) for _, key, _, _ in Formatter().parse(frame) if key):
            return None
        return Pair(fact, frame.format(**words), clash, f"reply {frame_kind}")

    def _draw_kind(self, group: Group) -> str:
        """A kind of things, mostly one that the group rules something out of."""
        kinds = [kind for kind, items in self._items.items() if items]
        ruling_kinds = [kind for kind in kinds for _ in self._clashing_items(group, kind)]
        return self._random.choice(ruling_kinds if ruling_kinds and self._random.random() < 0.9 else kinds)

    def _frames(self, kind: str, frame_kind: str) -> list[str]:
        kind_frames: Mapping[str, Any] = self._table.get(kind, {})
        return [*self._table["any"].get(frame_kind, ()), *kind_frames.get(frame_kind, ()) * 2]

    def _offered(self, group: Group, kind: str, clash: bool) -> list[Item]:
        """Up to `MAX_OFFERED` things that the group allows; for a clash one that it rules out among them."""
        items = [
            item
            for _ in range(self._random.randint(1, MAX_OFFERED) - clash)
            if (item := self._draw_item(group, kind, clash=False))
        ]
        if clash:
            clashing_item = self._draw_item(group, kind, clash=True)
            if clashing_item is None:
                return []
            items.insert(self._random.randint(0, len(items)), clashing_item)
        return items

    def _draw_item(self, group: Group, kind: str, *, clash: bool) -> Item | None:
        """A thing that the group rules out or allows, often called after what it is made without."""
        clashing_items = self._clashing_items(group, kind)
        for _ in range(TRIES if clashing_items or not clash else 0):
            # what is allowed is often what a fact rules out, made without that
            adapted = clashing_items and not clash and self._random.random() < 1 / 2
            item = self._random.choice(clashing_items if clash or adapted else self._items[kind])
            if adapted or self._random.randrange(ADAPTED_ONE_IN) == 0:
                item = self._adapt(item, group if not clash else None)
            if group.clashes(item.tags) is clash:
                return item
        return None

    def _clashing_items(self, group: Group, kind: str) -> list[Item]:
        if (group.name, kind) not in self._known:
            self._known[group.name, kind] = [item for item in self._items[kind] if group.clashes(item.tags)]
        return self._known[group.name, kind]

    def _adapt(self, item: Item, group: Group | None) -> Item:
        """The thing without some of its tags, and with a word before its name that says so; for the group if given."""
        words = [
            word
            for word, (removed_tags, kinds) in self._adapted.items()
            if item.kind in kinds and removed_tags & (item.tags.sure | item.tags.unsure)
        ]
        adapted_items = [_renamed_item(word, item, self._adapted[word][0]) for word in words]
        suitable_items = [
            adapted_item for adapted_item in adapted_items if group and group.clashes(adapted_item.tags) is False
        ]
        return self._random.choice(suitable_items or adapted_items or [item])


def _renamed_item(word: str, item: Item, removed_tags: frozenset[str]) -> Item:
    article, bare_name = _split_article(item.name)
    if article in ("a", "an"):
        article = "an" if word[0] in "aeiou" else "a"
    tags = Tags(item.tags.sure - removed_tags, item.tags.unsure - removed_tags)
    return replace(item, name=f"{article} {word} {bare_name}".strip(), tags=tags)


def _split_article(name: str) -> tuple[str, str]:
    """The article of a name, "" where it has none, and the rest."""
    first_word, _, remainder = name.partition(" ")
    return (first_word, remainder) if remainder and first_word in _ARTICLES else ("", name)


def _joined(items: Sequence[Item], word: str) -> str:
    *others, last = (item.name for item in items)
    return f"{', '.join(others)}{',' * (len(others) > 1)} {word} {last}" if others else last
