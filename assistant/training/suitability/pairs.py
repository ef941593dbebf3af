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
from assistant.training.suitability.tables import Group, Ingredients, Item, Naming, Tables, Tags

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


def make_pairs(tables: Tables, count: int, seed: int) -> list[Pair]:
    """So many different pairs, in an order drawn by the seed.

    Raises:
        ValueError: the tables are too small for so many.
    """
    return draw_distinct(_Maker(tables, Random(seed)).draw, count)  # noqa: S311 - training data, not a secret


def draw_distinct(draw: Callable[[], Pair | None], count: int) -> list[Pair]:
    """So many different pairs; what can't be labelled is drawn again.

    Raises:
        ValueError: no new pair comes of many tries.
    """
    pairs: dict[tuple[str, str], Pair] = {}
    tries = 0
    while len(pairs) < count:
        pair = draw()
        tries = tries + 1 if pair is None or (pair.fact, pair.text) in pairs else 0
        if tries > TRIES:
            raise ValueError(f"the tables hold no more than {len(pairs)} pairs")
        if pair:
            pairs.setdefault((pair.fact, pair.text), pair)
    return list(pairs.values())


def fill_frame(frame: str, item: Item, *others: Item) -> str:
    """A sentence around an item; a frame may name two others."""
    y, z = (other.name for other in others) if others else ("something else", "water")
    words = {"x": item.name, "y": y, "z": z}
    return frame.format(**words, **{key.upper(): capitalised(word) for key, word in words.items()})


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
        group, item = self._draw_clash()
        return self._pair(group, self._offer(item), True, "offered")

    def _free_offered(self) -> Pair | None:
        item = self._pick(self._tables.offers)
        group = self._pick([group for group in self._tables.groups if group.clashes(item.tags)])
        return self._pair(group, item.name, True, "free offered")

    def _listed(self) -> Pair | None:
        group, item = self._draw_clash()
        others = self._items_of_kind(item.kind)
        clash = self._random.random() < 0.6
        if not clash:
            others = self._suiting(group, item.kind)
            item = self._pick(others)
        return self._pair(group, self._fill(self._tables.frames[item.kind].lists, item, others), clash, "listed")

    def _turned(self) -> Pair | None:
        group, item = self._draw_clash()
        text = self._fill(self._tables.frames[item.kind].turned, item, self._suiting(group, item.kind))
        return self._pair(group, text, True, "turned")

    def _refused(self) -> Pair | None:
        group, item = self._draw_clash()
        text = self._fill(self._tables.frames[item.kind].refusals, item, self._suiting(group, item.kind))
        return self._pair(group, text, False, "refused")

    def _told(self) -> Pair | None:
        group, item = self._draw_clash()
        return self._pair(group, self._fill(self._tables.frames[item.kind].told, item), False, "told")

    def _other_offered(self) -> Pair | None:
        group, clashing = self._draw_clash()
        is_near = self._random.random() < 0.75
        item = self._pick(self._items_of_kind(clashing.kind) if is_near else self._pool)
        return self._pair(group, self._offer(item), False, "other offered") if _suits(group, item) else None

    def _other_free(self) -> Pair | None:
        group, item = self._pick(self._tables.groups), self._pick(self._tables.offers)
        return self._pair(group, item.name, False, "other free") if _suits(group, item) else None

    def _free_from(self) -> Pair | None:
        """What is named like something that clashes, and is made without it."""
        item = self._pick(self._tables.free)
        group = self._pick([group for group in self._tables.groups if group.clash.sure & item.tags.sure])
        if group.clash.sure & {"fish", "meat"} and not item.tags.sure & {"fish", "meat"}:
            return None  # "egg-free mayonnaise" may hold anything else that a vegan doesn't eat
        return self._pair(group, self._offer(item, bare_share=0.4), False, "free from")

    def _idle(self) -> Pair | None:
        return self._pair(self._pick(self._tables.groups), self._pick(self._tables.idle), False, "idle")

    # --- the fact rules nothing out ----------------------------------------------------------------------------------

    def _opposite(self) -> Pair | None:
        group, item = self._draw_clash()
        offers = self._tables.frames[item.kind].offers
        text = self._fill(offers, item) if self._random.random() < 0.7 else item.name
        return Pair(self._worded(self._pick(group.opposite)), self._dressed(text), False, "opposite")

    def _harmless(self) -> Pair | None:
        draw = self._random.random()
        item = self._pick(self._pool)
        text = self._pick(self._tables.idle) if draw < 0.2 else self._pick(self._tables.offers).name
        if draw > 0.5:
            text = self._fill(self._tables.frames[item.kind].offers, item)
        return Pair(self._worded(self._pick(self._tables.harmless)), self._dressed(text), False, "harmless")

    # --- facts about one thing, and dishes made of an ingredient -----------------------------------------------------

    def _ingredient(self) -> Pair | None:
        ingredients = self._tables.ingredients
        ingredient, other_ingredient = self._pick(ingredients.names), self._pick(ingredients.names)
        recipe = self._draw_named_recipe()
        if recipe == "other" and ingredients.are_alike(ingredient, other_ingredient):
            return None
        dish = self._dish(other_ingredient if recipe == "other" else ingredient)
        return self._about(ingredient, dish, self._items_of_kind("food"), ingredients, recipe, avoided=other_ingredient)

    def _named(self) -> Pair | None:
        """A fact about one thing that no group need know, beside that thing or another of its kind."""
        item = self._pick([item for item in self._tables.items if item.kind in self._tables.naming])
        other = self._pick(self._items_of_kind(item.kind))
        recipe = self._draw_named_recipe()
        if recipe == "other" and (_name_words(item.name) & _name_words(other.name) or item.tags.sure & other.tags.sure):
            return None
        offered = other if recipe == "other" else item
        return self._about(item.name, offered, [other], self._tables.naming[item.kind], recipe)

    def _draw_named_recipe(self) -> str:
        return self._random.choices(("clash", "other", "refused", "opposite"), (45, 25, 15, 15))[0]

    def _about(
        self, name: str, item: Item, others: list[Item], naming: Ingredients | Naming, recipe: str, avoided: str = ""
    ) -> Pair | None:
        """A fact about what has this name, and an item offered or refused; a refusal must not name what is avoided."""
        frames = self._tables.frames[item.kind]
        text = self._fill(frames.refusals if recipe == "refused" else frames.offers, item, others)
        if recipe in ("clash", "other") and self._random.random() < 0.3:
            text = item.name
        fact = capitalised(self._pick(naming.opposites if recipe == "opposite" else naming.facts).format(i=name))
        if recipe == "refused" and avoided and avoided in text:
            return None
        kind = "ingredient" if isinstance(naming, Ingredients) else "named"
        return Pair(self._worded(fact), self._dressed(text), recipe == "clash", f"{kind} {recipe}")

    def _own_ingredient(self) -> Pair | None:
        """A dish made up of an ingredient, for the facts of a group that knows the ingredient's tags."""
        ingredients = self._tables.ingredients
        dish = self._dish(self._pick([name for name in ingredients.names if name in ingredients.tags]))
        group = self._pick([group for group in self._tables.groups if group.clash.sure & _FOOD_TAGS])
        clash = group.clashes(dish.tags)
        text = self._fill(self._tables.frames["food"].offers, dish)
        return None if clash is None else self._pair(group, text, clash, "made up")

    def _dish(self, ingredient: str) -> Item:
        ingredients = self._tables.ingredients
        form = self._pick(list(ingredients.dishes))
        tags = ingredients.dishes[form] | ingredients.tags.get(ingredient, Tags(frozenset()))
        return Item(form.format(i=ingredient), "food", tags)

    # --- how it is said ----------------------------------------------------------------------------------------------

    def _draw_clash(self) -> tuple[Group, Item]:
        group = self._pick(self._tables.groups)
        return group, self._pick(self._clashing[group.name])

    def _items_of_kind(self, kind: str) -> list[Item]:
        return [item for item in self._pool if item.kind == kind]

    def _suiting(self, group: Group, kind: str) -> list[Item]:
        return [item for item in self._items_of_kind(kind) if _suits(group, item)]

    def _offer(self, item: Item, bare_share: float = 0.3) -> str:
        """The item offered, as often as this by its name alone."""
        is_bare = self._random.random() < bare_share
        return item.name if is_bare else self._fill(self._tables.frames[item.kind].offers, item)

    def _fill(self, frames: Sequence[str], item: Item, others: Sequence[Item] = ()) -> str:
        frame, candidates = self._pick(frames), [other for other in others if other.name != item.name]
        return fill_frame(frame, item, *(self._random.sample(candidates, 2) if len(candidates) > 1 else ()))

    def _pair(self, group: Group, text: str, clash: bool, recipe: str) -> Pair:
        return Pair(self._worded(self._pick(group.wordings)), self._dressed(text), clash, recipe)

    def _worded(self, fact: str) -> str:
        """A fact as people type it: with a few words before it, in small letters, without its full stop."""
        draw = self._random.random()
        if draw < 0.12:
            fact = self._pick(self._tables.prefixes) + within_sentence(fact)
        elif draw < 0.2:
            fact = fact.lower()
        return fact.rstrip(".") if self._random.random() < 0.15 else fact

    def _dressed(self, text: str) -> str:
        """A text alone, or beside a sentence that offers nothing."""
        draw = self._random.random()
        if draw < 0.1 and self._tables.idle:
            return f"{text.rstrip('.')}. {self._pick(self._tables.idle)}"
        if draw < 0.18 and self._tables.idle:
            return f"{self._pick(self._tables.idle)} {capitalised(text)}"
        return text

    def _pick(self, options: Sequence[T]) -> T:
        return self._random.choice(options)


# The tags that tell of what one eats: a group with one of them has facts on food.
_FOOD_TAGS = frozenset(
    "peanut nut sesame soy gluten dairy egg fish shellfish pork beef meat alcohol sugar spicy vitk purine".split()
)


def _suits(group: Group, item: Item) -> bool:
    return group.clashes(item.tags) is False


def _name_words(name: str) -> set[str]:
    return set(plain(name).split()) - JOINING


def capitalised(text: str) -> str:
    """The text as it opens a sentence."""
    return text[:1].upper() + text[1:]


def uncapitalised(text: str) -> str:
    """The text as it stands within one."""
    return text[:1].lower() + text[1:]


def within_sentence(fact: str) -> str:
    """A fact as it stands within a sentence, where "I" stays as it is."""
    return fact if fact.startswith(("I ", "I'")) else uncapitalised(fact)
