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
WORLD_RANKS, CONTINENT_RANKS = 10, 3

_NO_STATES = frozenset({"ay", "ee", "xx"})  # Antarctica, the European Union, the world
REGIONS = ("Africa", "Asia", "Europe", "North America", "Oceania", "South America")
# The Factbook's maps cut the continents into more parts than people ask for, and leave some countries between them.
_CONTINENT_OF_REGION = {
    "Middle East": "Asia",
    "Southeast Asia": "Asia",
    "Central America and the Caribbean": "North America",
}
_CONTINENTS_OF_COUNTRY = {"fr": ("Europe",), "ic": ("Europe",), "rs": ("Asia", "Europe"), "up": ("Europe",)}
_NUMBER = re.compile(r"(-?)\$?(\d[\d,]*(?:\.\d+)?)(?: (million|billion|trillion))?")
_SCALE = {"": 1.0, "million": 1e6, "billion": 1e9, "trillion": 1e12}
_BRACKETS = re.compile(r" ?\([^()]*\)")
_YEAR = re.compile(r"\((\d{4})\b")
# what follows a figure that is told already: a remark, a gauge, the part that is electrified
_REMARK = re.compile(r" ?; .*|, .*|(?<=meters) \d.*")


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
class _Figure:
    """A country's figure, to sort by and to tell: with its unit, and its year where the Factbook names one."""

    country: Country
    number: float
    text: str


def ranked_entries() -> Iterator[Entry]:
    """A passage for each end of each ranking: of the world and, where it is told, of the continents together."""
    for ranking in _rankings():
        figures = [figure for country in states() if (figure := _figure(country, ranking.field))]
        highest, lowest = (
            sorted(figures, key=lambda figure: figure.number, reverse=is_descending) for is_descending in (True, False)
        )
        for end, ordered_figures, lead, lead_there, keywords in (
            ("most", highest, ranking.most, ranking.most_there, ranking.most_keywords),
            ("least", lowest, ranking.least, ranking.least_there, ranking.least_keywords),
        ):
            if lead:
                yield Entry(_passage("World", ranking, end, _in_the_world(lead, ordered_figures)), keywords)
            if lead_there:
                yield Entry(
                    _passage("Continents", ranking, end, _in_each_continent(lead_there, ordered_figures)), keywords
                )


@cache
def _rankings() -> tuple[Ranking, ...]:
    return tuple(Ranking(**entry) for entry in tomllib.loads(RANKINGS.read_text(encoding="utf-8"))["ranking"])


def _passage(area: str, ranking: Ranking, end: str, text: str) -> Passage:
    key = "-".join(re.findall(r"\w+", f"{area} {ranking.title}".lower()))
    return Passage(f"factbook-ranked-{key}-{end}", f"{area} - {ranking.title}", text, source=SOURCE)


def _in_the_world(lead: str, figures: Sequence[_Figure]) -> str:
    first, second, third, *others = _ranks(figures)[:WORLD_RANKS]
    ending = f"After them come {', '.join(others[:-1])} and {others[-1]}."
    return f"{lead.format(where='in the world')} {first}. The second is {second}, and the third is {third}. {ending}"


def _in_each_continent(lead: str, figures: Sequence[_Figure]) -> str:
    sentences = []
    for region in REGIONS:
        first, second, third = _ranks([entry for entry in figures if region in regions(entry.country)])[
            :CONTINENT_RANKS
        ]
        sentences.append(f"{lead.format(where=f'in {region}')} {first}, before {second} and {third}.")
    return " ".join(sentences)


def _ranks(figures: Sequence[_Figure]) -> list[str]:
    """What stands at each rank, in order: a country with its figure, or all that share it."""
    return [_sharing(list(figures)) for _, figures in groupby(figures, key=lambda figure: figure.number)]


def _sharing(figures: Sequence[_Figure]) -> str:
    if len({figure.text for figure in figures}) == 1:
        return f"{_listed([figure.country.name for figure in figures])} with {figures[0].text}"
    return _listed([f"{figure.country.name} with {figure.text}" for figure in figures])


def _listed(items: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(items[:-1]), items[-1])))


def _figure(country: Country, field: str) -> _Figure | None:
    value = value_of(country.record, field)
    figure_text = _BRACKETS.sub("", value)
    # a mountain's name comes before its height, and may hold a number or a comma
    is_point = field.endswith("point")
    figure_text = figure_text.split(";")[0].strip() if is_point else _REMARK.sub("", figure_text)
    numbers = list(_NUMBER.finditer(figure_text))
    if not numbers:
        return None
    sign, digits, scale = numbers[-1 if is_point else 0].groups(default="")
    year = _YEAR.search(value)
    number = float(f"{sign}{digits.replace(',', '')}") * _SCALE[scale]
    return _Figure(country, number, f"{figure_text} ({year[1]})" if year else figure_text)


@cache
def states() -> tuple[Country, ...]:
    """The countries that are ranked."""
    return tuple(filter(_is_state, countries()))


def _is_state(country: Country) -> bool:
    record = country.record
    dependency_status = value_of(record, "Government > Dependency status")
    return (
        country.code not in _NO_STATES
        and not dependency_status
        and bool(value_of(record, "Government > Government type"))
    )


def regions(country: Country) -> tuple[str, ...]:
    """The continents that the country is ranked in."""
    map_region = value_of(country.record, "Geography > Map references")
    return _CONTINENTS_OF_COUNTRY.get(country.code, (_CONTINENT_OF_REGION.get(map_region, map_region),))
