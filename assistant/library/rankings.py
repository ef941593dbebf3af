"""Countries ranked by figures of the World Factbook, as passages that name the first of them.

The Factbook tells each country by itself, so that no passage of it says which of them has the most people.
`rankings.toml` names the figures. Only states are ranked, not what depends on one.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from pathlib import Path

from assistant.library.entry import Entry
from assistant.library.factbook import Country, countries, value_of
from assistant.types import Passage

RANKINGS = Path(__file__).with_name("rankings.toml")
SOURCE = "The World Factbook (CIA), countries ranked by its figures"
PLACES, PLACES_THERE = 10, 3

_NO_STATES = frozenset({"ay", "ee", "xx"})  # Antarctica, the European Union, the world
REGIONS = ("Africa", "Asia", "Europe", "North America", "Oceania", "South America")
# The Factbook's maps cut the continents into more parts than people ask for, and leave some countries between them.
_PARTS = {"Middle East": "Asia", "Southeast Asia": "Asia", "Central America and the Caribbean": "North America"}
_BETWEEN = {"fr": ("Europe",), "ic": ("Europe",), "rs": ("Asia", "Europe"), "up": ("Europe",)}
_NUMBER = re.compile(r"(-?)\$?(\d[\d,]*(?:\.\d+)?)(?: (million|billion|trillion))?")
_SCALE = {"": 1.0, "million": 1e6, "billion": 1e9, "trillion": 1e12}
_BRACKETS = re.compile(r" ?\([^()]*\)")
_YEAR = re.compile(r"\((\d{4})\b")
# what follows a figure that is told already: a remark, a gauge, the part that is electrified
_REST = re.compile(r" ?; .*|, .*|(?<=meters) \d.*")


@dataclass(frozen=True, slots=True)
class Ranking:
    """A figure to rank by, and what leads to the first country of each end; "" where that end is not told.

    The passages of an end are found by its keywords as well.
    """

    title: str
    field: str
    most: str = ""
    least: str = ""
    most_keywords: str = ""
    least_keywords: str = ""
    most_there: str = ""
    least_there: str = ""


@dataclass(frozen=True, slots=True)
class _Place:
    """A country's figure, to sort by and to tell: with its unit, and its year where the Factbook names one."""

    country: Country
    number: float
    told: str


def ranked_entries() -> Iterator[Entry]:
    """A passage for each end of each ranking: of the world and, where it is told, of the continents together."""
    for ranking in _rankings():
        places = [place for country in states() if (place := _place(country, ranking.field))]
        most, least = (sorted(places, key=lambda place: place.number, reverse=falls) for falls in (True, False))
        for end, ordered, lead, lead_there, keywords in (
            ("most", most, ranking.most, ranking.most_there, ranking.most_keywords),
            ("least", least, ranking.least, ranking.least_there, ranking.least_keywords),
        ):
            if lead:
                yield Entry(_passage("World", ranking, end, _in_the_world(lead, ordered)), keywords)
            if lead_there:
                yield Entry(_passage("Continents", ranking, end, _in_each_continent(lead_there, ordered)), keywords)


@cache
def _rankings() -> tuple[Ranking, ...]:
    return tuple(Ranking(**entry) for entry in tomllib.loads(RANKINGS.read_text(encoding="utf-8"))["ranking"])


def _passage(where: str, ranking: Ranking, end: str, text: str) -> Passage:
    key = "-".join(re.findall(r"\w+", f"{where} {ranking.title}".lower()))
    return Passage(f"factbook-ranked-{key}-{end}", f"{where} - {ranking.title}", text, source=SOURCE)


def _in_the_world(lead: str, places: Sequence[_Place]) -> str:
    one, two, three, *rest = _ranks(places)[:PLACES]
    after = f"After them come {', '.join(rest[:-1])} and {rest[-1]}."
    return f"{lead.format(where='in the world')} {one}. The second is {two}, and the third is {three}. {after}"


def _in_each_continent(lead: str, places: Sequence[_Place]) -> str:
    told = []
    for region in REGIONS:
        one, two, three = _ranks([place for place in places if region in regions(place.country)])[:PLACES_THERE]
        told.append(f"{lead.format(where=f'in {region}')} {one}, before {two} and {three}.")
    return " ".join(told)


def _ranks(places: Sequence[_Place]) -> list[str]:
    """What stands at each rank, in order: a country with its figure, or all that share it."""
    return [_sharing(list(places)) for _, places in groupby(places, key=lambda place: place.number)]


def _sharing(places: Sequence[_Place]) -> str:
    if len({place.told for place in places}) == 1:
        return f"{_listed([place.country.name for place in places])} with {places[0].told}"
    return _listed([f"{place.country.name} with {place.told}" for place in places])


def _listed(items: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(items[:-1]), items[-1])))


def _place(country: Country, field: str) -> _Place | None:
    value = value_of(country.record, field)
    told = _BRACKETS.sub("", value)
    # a mountain's name comes before its height, and may hold a number or a comma
    named = field.endswith("point")
    told = told.split(";")[0].strip() if named else _REST.sub("", told)
    numbers = list(_NUMBER.finditer(told))
    if not numbers:
        return None
    sign, digits, scale = numbers[-1 if named else 0].groups(default="")
    year = _YEAR.search(value)
    number = float(f"{sign}{digits.replace(',', '')}") * _SCALE[scale]
    return _Place(country, number, f"{told} ({year[1]})" if year else told)


@cache
def states() -> tuple[Country, ...]:
    """The countries that are ranked."""
    return tuple(filter(_is_state, countries()))


def _is_state(country: Country) -> bool:
    record = country.record
    depends = value_of(record, "Government > Dependency status")
    return country.code not in _NO_STATES and not depends and bool(value_of(record, "Government > Government type"))


def regions(country: Country) -> tuple[str, ...]:
    """The continents that the country is ranked in."""
    named = value_of(country.record, "Geography > Map references")
    return _BETWEEN.get(country.code, (_PARTS.get(named, named),))
