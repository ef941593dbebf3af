"""Reads the tables beside this file, and says which tags of an item clash with which group of facts.

Every entry belongs to one part: "train", "dev" or "test", decided by a hash of it and the seed. A group of facts that
is not in "train" lends no wording to training, an item that is not lends no sentence.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

Part = Literal["train", "dev", "test", "all"]
HERE = Path(__file__).parent
# Of a hundred entries so many are in "dev", and as many in "test".
HELD_OUT = 10
_UNSURE = "?"


@dataclass(frozen=True, slots=True)
class Tags:
    """What an item has, or what clashes with a fact: `sure`, and `unsure` where some have it and others don't."""

    sure: frozenset[str]
    unsure: frozenset[str] = frozenset()

    @staticmethod
    def parse(text: str, implied: Mapping[str, str] | None = None) -> Tags:
        """Read "egg dairy?" with what each tag implies."""
        words = text.split()
        words += [
            implied_tag + _UNSURE * word.endswith(_UNSURE) for word in words if (implied_tag := _implied(word, implied))
        ]
        sure = frozenset(word for word in words if not word.endswith(_UNSURE))
        return Tags(sure, frozenset(word.rstrip(_UNSURE) for word in words if word.endswith(_UNSURE)) - sure)

    def __or__(self, other: Tags) -> Tags:
        sure = self.sure | other.sure
        return Tags(sure, (self.unsure | other.unsure) - sure)


def _implied(word: str, implied: Mapping[str, str] | None) -> str:
    return (implied or {}).get(word.rstrip(_UNSURE), "")


@dataclass(frozen=True, slots=True)
class Item:
    """Something that a sentence can offer: its name within a sentence, its kind (food, activity, ...) and its tags."""

    name: str
    kind: str
    tags: Tags


@dataclass(frozen=True, slots=True)
class Group:
    """Facts in many wordings that rule the same things out; `opposite` ones, alike in words, rule nothing out."""

    name: str
    clash: Tags
    wordings: tuple[str, ...]
    opposite: tuple[str, ...]

    def clashes(self, tags: Tags) -> bool | None:
        """Whether something with these tags clashes with the facts; None where one can't tell."""
        if tags.sure & self.clash.sure:
            return True
        if (tags.sure | tags.unsure) & (self.clash.sure | self.clash.unsure):
            return None
        return False


@dataclass(frozen=True, slots=True)
class Frames:
    """Sentences around an item; see frames.toml."""

    offers: tuple[str, ...]
    refusals: tuple[str, ...]
    turned: tuple[str, ...]
    lists: tuple[str, ...]
    told: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Ingredients:
    """Single ingredients, what is cooked from them, and facts about one of them; see ingredients.toml."""

    names: tuple[str, ...]
    pairs: tuple[frozenset[str], ...]
    dishes: Mapping[str, Tags]
    tags: Mapping[str, Tags]
    facts: tuple[str, ...]
    opposites: tuple[str, ...]

    def are_alike(self, first: str, second: str) -> bool:
        """Whether two ingredients are the same, or too alike to tell what a fact on one says of the other."""
        return first == second or any({first, second} <= pair for pair in self.pairs)


@dataclass(frozen=True, slots=True)
class Naming:
    """Facts about a thing {i}, by its kind: `facts` rule it out, `opposites` don't."""

    facts: tuple[str, ...]
    opposites: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Tables:
    """One part of all tables."""

    groups: tuple[Group, ...]
    items: tuple[Item, ...]
    free: tuple[Item, ...]
    ingredients: Ingredients
    naming: Mapping[str, Naming]
    frames: Mapping[str, Frames]
    offers: tuple[Item, ...]
    idle: tuple[str, ...]
    harmless: tuple[str, ...]
    prefixes: tuple[str, ...]


def part_of(entry: str, seed: int) -> Part:
    """The part that an entry of a table is in."""
    bucket = int(sha256(f"{seed} {entry}".encode()).hexdigest(), 16) % 100
    return "dev" if bucket < HELD_OUT else "test" if bucket < 2 * HELD_OUT else "train"


def load_tables(part: Part, seed: int, *, known: bool = False) -> Tables:
    """The tables of one part.

    Args:
        part: which; "all" for every entry.
        seed: decides the split.
        known: for "dev" and "test", the groups that training has, with their held-out wordings, in place of the
            groups that it lacks.
    """
    foods, things, frames, sentences = (read_table(name) for name in ("foods", "things", "frames", "sentences"))
    implied = read_table("facts")["implies"]

    def select(entries: Iterable[str]) -> tuple[str, ...]:
        return tuple(entry for entry in entries if part in ("all", part_of(entry, seed)))

    def items(table: Mapping[str, str], kind: str) -> list[Item]:
        return [Item(name, kind, Tags.parse(table[name], implied)) for name in select(table)]

    kinds = {kind: table for kind, table in {**foods, **things}.items() if kind != "free"}
    return Tables(
        groups=_groups(part, seed, known),
        items=tuple(item for kind, table in kinds.items() for item in items(table, kind)),
        free=tuple(items(foods["free"], "food")),
        ingredients=_ingredients(select, implied),
        naming=_naming(kinds, select),
        frames={kind: _frames(frames, kind, select) for kind in kinds},
        offers=tuple(items(sentences["offers"], "sentence")),
        idle=select(sentences["idle"]["texts"]),
        harmless=select(read_table("harmless")["facts"]),
        prefixes=tuple(frames["prefixes"]["facts"]),
    )


def _groups(part: Part, seed: int, known: bool) -> tuple[Group, ...]:
    """The groups of a part with all their wordings; the groups of training, with the wordings of the part."""
    table = read_table("facts")
    among_training = known or part in ("train", "all")
    groups = []
    for name, row in table["groups"].items():
        group_part = "train" if name in table["core"] else part_of(f"group {name}", seed)
        if part != "all" and group_part != ("train" if among_training else part):
            continue
        wordings, opposite = (
            tuple(text for text in row.get(key, ()) if not among_training or part in ("all", part_of(text, seed)))
            for key in ("wordings", "opposite")
        )
        unsure_tags = Tags(frozenset(), frozenset(row.get("maybe", "").split()))
        if wordings:
            groups.append(Group(name, Tags.parse(row["clash"]) | unsure_tags, wordings, opposite))
    return tuple(groups)


def _ingredients(select: Any, implied: Mapping[str, str]) -> Ingredients:
    table = read_table("ingredients")
    return Ingredients(
        names=select(table["names"]),
        pairs=tuple(frozenset(pair) for pair in table["pairs"]),
        dishes={dish: Tags.parse(text, implied) for dish, text in table["dishes"].items()},
        tags={name: Tags.parse(text, implied) for name, text in table["tags"].items()},
        facts=select(table["facts"]),
        opposites=select(table["opposites"]),
    )


def _naming(kinds: Iterable[str], select: Any) -> dict[str, Naming]:
    """How facts name things, a kind each; of food as of ingredients."""
    named_things, ingredients = read_table("facts")["named"], read_table("ingredients")
    rows = {kind: named_things.get(kind, ingredients) for kind in kinds}
    return {kind: Naming(select(row["facts"]), select(row["opposites"])) for kind, row in rows.items()}


def _frames(table: Mapping[str, Any], kind: str, select: Any) -> Frames:
    names = [field.name for field in fields(Frames)]
    return Frames(*(select([*table["any"].get(name, ()), *table.get(kind, {}).get(name, ())]) for name in names))


@cache
def read_table(name: str) -> dict[str, Any]:
    """A table as it stands in its file, unsplit."""
    return tomllib.loads((HERE / f"{name}.toml").read_text(encoding="utf-8"))
