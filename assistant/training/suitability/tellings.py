"""Makes pairs of a fact and a sentence that tells of the world: it may list things, and offers none of them.

Without such pairs lists alone look like offers, since whatever else a reader learns from lists what may be eaten, done
or bought. None of these clash, whatever the fact; the table is `tellings.toml`.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from assistant.training.suitability.pairs import Pair, capitalised, draw_distinct
from assistant.training.suitability.tables import Tables, read_table

# Things that one sentence names, at most.
MAX_THINGS = 6


def make_tellings(tables: Tables, count: int, seed: int) -> list[Pair]:
    """So many different pairs, in an order drawn by the seed."""
    random = Random(seed)  # noqa: S311 - training data, not a secret
    subjects = list(read_table("tellings").values())

    def draw() -> Pair:
        fact = random.choice(random.choice(tables.groups).wordings)
        return Pair(fact, _sentence(random.choice(subjects), random), clash=False, recipe="telling")

    return draw_distinct(draw, count)


def _sentence(subject: dict[str, Any], random: Random) -> str:
    things = random.sample(subject["things"], random.randint(1, MAX_THINGS))
    return capitalised(
        random.choice(subject["frames"]).format(
            s=random.choice(subject["of"]), a=_joined(things), A=capitalised(_joined(things))
        )
    )


def _joined(things: Sequence[str]) -> str:
    *others, last = things
    return f"{', '.join(others)} and {last}" if others else last
