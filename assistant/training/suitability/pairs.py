"""Makes pairs of fact and text, labelled by whether they clash, from one part of the tables.

Each pair is made by one of several recipes, drawn by weight: something that clashes is offered; it is named but
refused, or only told of; something else is offered; the fact rules nothing out. A pair that one can't label is drawn
again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import TypeVar

from assistant.judges.suitability.names import JOINING, plain
from assistant.training.suitability.tables import Group, Item, Tables, Tags

T = TypeVar("T")
# A label that can't be had ends a recipe; so many tries in a row mean that a part of the tables is too small.
TRIES = 10_000


@dataclass(frozen=True, slots=True)
class Pair:
    """What a person said of themselves, a text that would be shown, and whether they clash; `recipe` made it."""

    fact: str
    text: str
    clash: bool
    recipe: str


def make(tables: Tables, count: int, seed: int) -> list[Pair]:
    """So many different pairs, in an order drawn by the seed.

    Raises:
        ValueError: the tables are too small for so many.
    """
    return drawn(_Maker(tables, Random(seed)).draw, count)  # noqa: S311 - training data, not a secret


def drawn(draw: Callable[[], Pair | None], count: int) -> list[Pair]:
    """So many different pairs; what can't be labelled is drawn again.

    Raises:
        ValueError: no new pair comes of many tries.
    """
    found: dict[tuple[str, str], Pair] = {}
    tries = 0
    while len(found) < count:
        pair = draw()
        tries = tries + 1 if pair is None or (pair.fact, pair.text) in found else 0
        if tries > TRIES:
            raise ValueError(f"the tables hold no more than {len(found)} pairs")
        if pair:
            found.setdefault((pair.fact, pair.text), pair)
    return list(found.values())


def fill(frame: str, item: Item, *others: Item) -> str:
    """A sentence around an item; a frame may name two others."""
    y, z = (other.name for other in others) if others else ("something else", "water")
    words = {"x": item.name, "y": y, "z": z}
    return frame.format(**words, **{key.upper(): capital(word) for key, word in words.items()})


class _Maker:
    """The recipes; each gives a pair, or None where its draw can't be labelled."""

    def __init__(self, tables: Tables, random: Random) -> None:
        self._tables, self._random = tables, random
        self._pool = [*tables.items, *tables.free]
        self._clashing = {
            group.name: [item for item in tables.items if group.clashes(item.tags)] for group in tables.groups
        }
        self._recipes: dict[Callable[[], Pair | None], float] = {
            self._offered: 26,
            self._free_offered: 12,
            self._listed: 7,
            self._turned: 6,
            self._refused: 15,
            self._other_offered: 14,
            self._other_free: 9,
            self._free_from: 3,
            self._told: 4,
            self._idle: 7,
            self._opposite: 7,
            self._harmless: 9,
            self._ingredient: 11,
            self._own_ingredient: 4,
            self._named: 10,
        }

    def draw(self) -> Pair | None:
        """A pair by one of the recipes."""
        recipe = self._random.choices(list(self._recipes), list(self._recipes.values()))[0]
        try:
            return recipe()
        except IndexError:  # a part may lack what the recipe draws from
            return None

    # --- the fact rules something out --------------------------------------------------------------------------------

    def _offered(self) -> Pair | None:
        group, item = self._clash()
        bare = self._random.random() < 0.3
        text = item.name if bare else self._fill(self._one(self._tables.frames[item.kind].offers), item)
        return self._pair(group, text, True, "offered")

    def _free_offered(self) -> Pair | None:
        item = self._one(self._tables.offers)
        group = self._one([group for group in self._tables.groups if group.clashes(item.tags)])
        return self._pair(group, item.name, True, "free offered")

    def _listed(self) -> Pair | None:
        group, item = self._clash()
        others = self._others(item.kind)
        clash = self._random.random() < 0.6
        if not clash:
            harmless = [other for other in others if group.clashes(other.tags) is False]
            item, others = self._one(harmless), harmless
        text = self._fill(self._one(self._tables.frames[item.kind].lists), item, others)
        return self._pair(group, text, clash, "listed")

    def _turned(self) -> Pair | None:
        group, item = self._clash()
        others = [other for other in self._others(item.kind) if group.clashes(other.tags) is False]
        text = self._fill(self._one(self._tables.frames[item.kind].turned), item, others)
        return self._pair(group, text, True, "turned")

    def _refused(self) -> Pair | None:
        group, item = self._clash()
        others = [other for other in self._others(item.kind) if group.clashes(other.tags) is False]
        text = self._fill(self._one(self._tables.frames[item.kind].refusals), item, others)
        return self._pair(group, text, False, "refused")

    def _told(self) -> Pair | None:
        group, item = self._clash()
        text = self._fill(self._one(self._tables.frames[item.kind].told), item)
        return self._pair(group, text, False, "told")

    def _other_offered(self) -> Pair | None:
        group, clashing = self._clash()
        near = self._random.random() < 0.75
        item = self._one(self._others(clashing.kind) if near else self._pool)
        if group.clashes(item.tags) is not False:
            return None
        bare = self._random.random() < 0.3
        text = item.name if bare else self._fill(self._one(self._tables.frames[item.kind].offers), item)
        return self._pair(group, text, False, "other offered")

    def _other_free(self) -> Pair | None:
        group, item = self._one(self._tables.groups), self._one(self._tables.offers)
        if group.clashes(item.tags) is not False:
            return None
        return self._pair(group, item.name, False, "other free")

    def _free_from(self) -> Pair | None:
        """What is named like something that clashes, and is made without it."""
        item = self._one(self._tables.free)
        group = self._one([group for group in self._tables.groups if group.clash.sure & item.tags.sure])
        if group.clash.sure & {"fish", "meat"} and not item.tags.sure & {"fish", "meat"}:
            return None  # "egg-free mayonnaise" may hold anything else that a vegan doesn't eat
        bare = self._random.random() < 0.4
        text = item.name if bare else self._fill(self._one(self._tables.frames["food"].offers), item)
        return self._pair(group, text, False, "free from")

    def _idle(self) -> Pair | None:
        return self._pair(self._one(self._tables.groups), self._one(self._tables.idle), False, "idle")

    # --- the fact rules nothing out ----------------------------------------------------------------------------------

    def _opposite(self) -> Pair | None:
        group, item = self._clash()
        frames = self._tables.frames[item.kind]
        text = self._fill(self._one(frames.offers), item) if self._random.random() < 0.7 else item.name
        return Pair(self._worded(self._one(group.opposite)), self._dressed(text), False, "opposite")

    def _harmless(self) -> Pair | None:
        kind = self._random.random()
        item = self._one(self._pool)
        text = self._one(self._tables.idle) if kind < 0.2 else self._one(self._tables.offers).name
        if kind > 0.5:
            text = self._fill(self._one(self._tables.frames[item.kind].offers), item)
        return Pair(self._worded(self._one(self._tables.harmless)), self._dressed(text), False, "harmless")

    # --- facts about one ingredient, and dishes made of it -----------------------------------------------------------

    def _ingredient(self) -> Pair | None:
        known = self._tables.ingredients
        mine, other = self._one(known.names), self._one(known.names)
        kind = self._random.choices(("clash", "other", "refused", "opposite"), (45, 25, 15, 15))[0]
        if kind == "other" and known.near(mine, other):
            return None
        dish = self._dish(other if kind == "other" else mine)
        frames = self._tables.frames["food"]
        text = self._fill(
            self._one(frames.refusals if kind == "refused" else frames.offers), dish, self._others("food")
        )
        if kind in ("clash", "other") and self._random.random() < 0.3:
            text = dish.name
        facts = known.opposites if kind == "opposite" else known.facts
        fact = capital(self._one(facts).format(i=mine))
        if kind == "refused" and other in text:
            return None
        return Pair(self._worded(fact), self._dressed(text), kind == "clash", f"ingredient {kind}")

    def _named(self) -> Pair | None:
        """A fact about one thing that no group need know, beside that thing or another of its kind."""
        item = self._one([item for item in self._tables.items if item.kind in self._tables.naming])
        other = self._one(self._others(item.kind))
        naming, frames = self._tables.naming[item.kind], self._tables.frames[item.kind]
        recipe = self._random.choices(("clash", "other", "refused", "opposite"), (45, 25, 15, 15))[0]
        if recipe == "other" and (_words(item.name) & _words(other.name) or item.tags.sure & other.tags.sure):
            return None
        offered = other if recipe == "other" else item
        text = self._fill(self._one(frames.refusals if recipe == "refused" else frames.offers), offered, [other])
        if recipe in ("clash", "other") and self._random.random() < 0.3:
            text = offered.name
        fact = self._one(naming.opposites if recipe == "opposite" else naming.facts).format(i=item.name)
        return Pair(self._worded(capital(fact)), self._dressed(text), recipe == "clash", f"named {recipe}")

    def _own_ingredient(self) -> Pair | None:
        """A dish made up of an ingredient, for the facts of a group that knows the ingredient's tags."""
        known = self._tables.ingredients
        dish = self._dish(self._one([name for name in known.names if name in known.tags]))
        group = self._one([one for one in self._tables.groups if one.clash.sure & _FOOD])
        clash = group.clashes(dish.tags)
        text = self._fill(self._one(self._tables.frames["food"].offers), dish)
        return None if clash is None else self._pair(group, text, clash, "made up")

    def _dish(self, ingredient: str) -> Item:
        known = self._tables.ingredients
        form = self._one(list(known.dishes))
        tags = known.dishes[form] | known.tags.get(ingredient, Tags(frozenset()))
        return Item(form.format(i=ingredient), "food", tags)

    # --- how it is said ----------------------------------------------------------------------------------------------

    def _clash(self) -> tuple[Group, Item]:
        group = self._one(self._tables.groups)
        return group, self._one(self._clashing[group.name])

    def _others(self, kind: str) -> list[Item]:
        return [item for item in self._pool if item.kind == kind]

    def _fill(self, frame: str, item: Item, others: Sequence[Item] = ()) -> str:
        some = [other for other in others if other.name != item.name]
        return fill(frame, item, *(self._random.sample(some, 2) if len(some) > 1 else ()))

    def _pair(self, group: Group, text: str, clash: bool, recipe: str) -> Pair:
        return Pair(self._worded(self._one(group.wordings)), self._dressed(text), clash, recipe)

    def _worded(self, fact: str) -> str:
        """A fact as people type it: with a few words before it, in small letters, without its full stop."""
        kind = self._random.random()
        if kind < 0.12:
            fact = self._one(self._tables.prefixes) + (fact if fact.startswith(("I ", "I'")) else small(fact))
        elif kind < 0.2:
            fact = fact.lower()
        return fact.rstrip(".") if self._random.random() < 0.15 else fact

    def _dressed(self, text: str) -> str:
        """A text alone, or beside a sentence that offers nothing."""
        kind = self._random.random()
        if kind < 0.1 and self._tables.idle:
            return f"{text.rstrip('.')}. {self._one(self._tables.idle)}"
        if kind < 0.18 and self._tables.idle:
            return f"{self._one(self._tables.idle)} {capital(text)}"
        return text

    def _one(self, some: Sequence[T]) -> T:
        return self._random.choice(some)


# The tags that tell of what one eats: a group with one of them has facts on food.
_FOOD = frozenset(
    "peanut nut sesame soy gluten dairy egg fish shellfish pork beef meat alcohol sugar spicy vitk purine".split()
)


def _words(name: str) -> set[str]:
    return set(plain(name).split()) - JOINING


def capital(text: str) -> str:
    """The text as it opens a sentence."""
    return text[:1].upper() + text[1:]


def small(text: str) -> str:
    """The text as it stands within one."""
    return text[:1].lower() + text[1:]
