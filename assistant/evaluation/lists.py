"""Measures what is left of lists of which some items clash with a fact: those that suit should be, and no others.

The records are pairs as in `suitability.py`: one of kind "list", with the whole sentence, and behind it one of kind
"item" for each of its items. The first item holds the beginning of the sentence as well, so that its last word alone
tells whether it is left.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from assistant.errors import DataError
from assistant.evaluation.suitability import Pair, read_pairs
from assistant.experiment.measures import ratio
from assistant.experiment.runs import Row
from assistant.experiment.task import Summary
from assistant.steps.suitability import Sieve
from assistant.text.sentences import normalise

# What the sentences reply to, since in a turn there is always a question.
QUESTION = "What do you suggest?"
# Gives what removes from texts what clashes with this fact.
SieveFor = Callable[[str], Sieve]


@dataclass(frozen=True)
class ItemList:
    """A sentence that clashes with a fact, and its items, of which some or all do."""

    whole: Pair
    items: tuple[Pair, ...]


def read_lists(path: Path) -> list[ItemList]:
    """The lists of a file of which an item clashes.

    Raises:
        DataError: a line is broken, an item comes before its list, or there is no such list.
    """
    groups: list[list[Pair]] = []
    for pair in read_pairs(path):
        if pair.kind == "list":
            groups.append([])
        if not groups:
            raise DataError(f"{path} begins with an item; put each list before its items.")
        groups[-1].append(pair)
    lists = [ItemList(whole, tuple(items)) for whole, *items in groups if any(item.clash for item in items)]
    if not lists:
        raise DataError(f"No list of {path} has an item that clashes; give {{fact, text, clash, kind}} lines.")
    return lists


def measure(lists: Sequence[ItemList], sieve_for: SieveFor, seed: int) -> tuple[Summary, list[Row]]:
    """The shares of items that are left, of those that suit and of those that clash; a row for each list.

    Apart from all lists: those whose first item clashes, of which the beginning of the sentence has to be kept.
    """
    rows = [_row(n, item_list, sieve_for(item_list.whole.fact)) for n, item_list in enumerate(lists, 1)]
    first_rows = [row for row, item_list in zip(rows, lists, strict=True) if item_list.items[0].clash]
    return {"all": _shares(rows, seed), "first_clashes": _shares(first_rows, seed)}, rows


def _row(number: int, item_list: ItemList, sieve: Sieve) -> Row:
    text, _ = sieve.sift(item_list.whole.text)
    left = f" {normalise(text)} "
    first, *others = (normalise(item.text) for item in item_list.items)
    is_left = [f" {name} " in left for name in (first.rpartition(" ")[2], *others)]
    row: Row = {"id": f"list {number}", "fact": item_list.whole.fact, "text": item_list.whole.text, "left": text}
    for name, clash in (("suiting", 0), ("clashing", 1)):
        flags = [flag for flag, item in zip(is_left, item_list.items, strict=True) if item.clash == clash]
        row |= {name: len(flags), f"{name}_left": sum(flags)}
    return row


def _shares(rows: Sequence[Row], seed: int) -> Summary:
    shares = {
        name: ratio([row[f"{name}_left"] for row in rows], [row[name] for row in rows], seed)
        for name in ("suiting", "clashing")
        if rows
    }
    return {"lists": len(rows), **{f"{name}_left": share for name, share in shares.items()}}
