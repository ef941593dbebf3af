import json
import re
import shutil
import tomllib
from pathlib import Path

import pytest

from assistant.errors import LibraryError
from assistant.library import factbook, starter
from assistant.library.entry import Entry
from assistant.library.shelves import library_names, open_library
from assistant.library.starter import SHELF_SOURCE, content_version, ensure_starter, shelf_entries
from assistant.settings import Settings
from assistant.types import Passage

QUESTIONS = Path(__file__).parent / "data" / "library_passages.jsonl"


@pytest.fixture(scope="module")
def by_country() -> dict[str, list[Entry]]:
    return {country.code: list(factbook.country_entries(country)) for country in factbook.countries()}


@pytest.fixture(scope="module")
def entries(by_country) -> list[Entry]:
    return [one for some in by_country.values() for one in some]


@pytest.fixture(scope="module")
def passages(entries) -> list[Passage]:
    return [one.passage for one in entries]


def of(passages: list[Passage], key: str) -> str:
    return " ".join(one.text for one in passages if one.id.startswith(f"factbook-{key}-"))


def test_every_country_has_passages(passages):
    assert len(factbook.countries()) == 256
    assert len(passages) > 10_000
    assert len({one.id for one in passages}) == len(passages)
    assert {one.source for one in passages} == {factbook.SOURCE}


def test_passages_have_a_good_length(passages):
    lengths = [len(one.text.split()) for one in passages]
    assert sum(40 <= length <= 120 for length in lengths) / len(lengths) > 0.75
    assert max(lengths) < 170


def test_passages_are_titled_by_country_and_topic(passages):
    titles = {one.title for one in passages}
    assert {"Norway - Geography", "Netherlands - Languages", "United States (USA) - Population"} <= titles


def test_passages_name_their_country(passages):
    names = {country.code: country.name.removeprefix("the ") for country in factbook.countries()}
    assert all(names[one.id.split("-")[1]] in one.text for one in passages)


@pytest.mark.parametrize(
    "pattern",
    [
        r"</?[a-z]+ ?/?>",
        r"&[a-z]+;",
        r";\.",
        r"\.\.(?!\.)",
        r"\s\s",
        r"\n",
        r"\best\.",
        r"\{\d?\}",
        r"https?://",
        r"\bbbl\b",
    ],
)
def test_nothing_of_the_records_form_is_left(passages, pattern):
    assert [one.id for one in passages if re.search(pattern, one.text)] == []


def test_passages_read_as_sentences(passages):
    assert all(one.text[0].isupper() or not one.text[0].isalpha() for one in passages)
    assert all(one.text[-1] in '.?!"”' for one in passages)


@pytest.mark.parametrize(
    ("key", "sentence"),
    [
        ("no-population", "The population of Norway is 5,509,733 (2024 estimate)."),
        ("no-population", "The largest cities of Norway by population are Oslo (capital; 1.086 million) (2023)."),
        ("no-geography", "The coastline of Norway is 25,148 kilometers."),
        ("no-overview", "west of Sweden. Its capital is Oslo. Its population is 5,509,733 (2024 estimate)."),
        ("nl-geography", "The Netherlands is located in Western Europe"),
        ("fr-government", "The head of state of France is President Emmanuel Macron (since 14 May 2017)."),
        ("uk-government", "King Charles III"),
        ("ch-government", "Xi Jinping"),
        ("in-parliament", "19 April 2024"),
        ("sz-languages", "The languages spoken in Switzerland are German (or Swiss German) (official) 62.1%"),
        ("ja-currency", "The currency of Japan is yen (JPY); one US dollar buys"),
        ("ke-climate", "The climate of Kenya: varies from tropical along coast to arid in interior."),
        ("it-international", "NATO"),
        ("xx-rivers", "Nile (Africa) 6,650 kilometers; Amazon (South America) 6,436 kilometers"),
    ],
)
def test_sentences_that_people_ask_for(passages, key, sentence):
    assert sentence in of(passages, key)


@pytest.mark.parametrize(
    ("value", "cleaned"),
    [
        ("<p>first<br><br><strong>note:</strong> second</p>", "first; second"),
        ("323,802 sq km (2011 est.)", "323,802 square kilometers (2011 estimate)"),
        ("10.35 births/1,000 population", "10.35 births per 1,000 population"),
        ("Olav TRYGGVASON joined NATO", "Olav Tryggvason joined NATO"),
        ("And&oslash;ya", "Andøya"),
        ("", ""),
    ],
)
def test_values_are_cleaned(value, cleaned):
    assert factbook.clean(value) == cleaned


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("no-population", {"inhabitants", "residents"}),
        ("no-economy", {"richer", "wealthy"}),
        ("no-health", {"doctors"}),
        ("no-currency", {"money"}),
        ("uk-population", {"Britain"}),
        ("nl-geography", {"Holland", "big"}),
    ],
)
def test_what_people_say_for_a_field_is_a_keyword_and_nowhere_shown(entries, key, words):
    found = [one for one in entries if one.passage.id.startswith(f"factbook-{key}-")]
    assert words <= {word for one in found for word in one.keywords.split()}
    assert not [one for one in found for word in words if word in f"{one.passage.title} {one.passage.text}".split()]


def test_every_keyword_belongs_to_a_field_that_is_told():
    written = tomllib.loads(factbook.TOPICS.read_text(encoding="utf-8"))
    told = {field for topic in written["topic"] for _, *fields in topic["sentences"] for field in fields}
    assert set(written["keywords"]) <= told


def test_keywords_go_with_what_they_are_words_for(entries):
    economy = [one for one in entries if one.passage.id.startswith("factbook-no-economy-")]
    assert len(economy) > 1
    assert ["richer" in one.keywords for one in economy] == ["per capita" in one.passage.text for one in economy]


def test_the_shelf_is_read(tmp_path):
    (tmp_path / "food.md").write_text(
        "# Food\n\nWritten for Sequitur.\n\n## Rice\nBoil it\nin water.\n\n"
        "## Oats\n<!-- keywords: porridge, muesli -->\n\nSoak them.\n",
        encoding="utf-8",
    )
    assert list(shelf_entries(tmp_path)) == [
        Entry(Passage("shelf-food-001", "Rice", "Boil it in water.", source=SHELF_SOURCE)),
        Entry(Passage("shelf-food-002", "Oats", "Soak them.", source=SHELF_SOURCE), "porridge, muesli"),
    ]
    assert list(shelf_entries(tmp_path / "none")) == []


def test_the_shelf_that_ships_is_whole():
    passages = [one.passage for one in shelf_entries()]
    assert len(passages) > 100
    assert not [one.id for one in passages if "<!--" in one.text or "-->" in one.text]
    assert all(one.title and len(one.text.split()) >= 40 for one in passages)


@pytest.mark.lucene
def test_the_library_is_built_once_and_again_when_its_contents_change(tmp_path, monkeypatch):
    few = factbook.countries()[:3]
    monkeypatch.setattr(factbook, "countries", lambda: few)
    settings = Settings(data_dir=tmp_path)
    seen: list[tuple[int, int]] = []
    ensure_starter(settings, lambda done, total: seen.append((done, total)))
    assert seen[-1] == (4, 4)
    assert library_names(settings) == ["starter"]
    searched = open_library("starter", settings)
    size = len(searched)
    assert searched.search("lactose intolerance", 1)[0].source == SHELF_SOURCE
    assert few[0].title in searched.search(f"capital of {few[0].title}", 1)[0].title

    ensure_starter(settings, lambda done, total: pytest.fail("built again"))
    monkeypatch.setattr(starter, "content_version", lambda: "another")
    ensure_starter(settings, lambda done, total: None)
    assert len(searched) == size


@pytest.mark.lucene
def test_everyday_questions_find_what_answers_them(tmp_path, by_country, monkeypatch):
    """Of 95 questions, 59 had their passage among the first four while such words stood in the sentences."""
    monkeypatch.setattr(factbook, "country_entries", lambda country: iter(by_country[country.code]))
    ensure_starter(Settings(data_dir=tmp_path), lambda done, total: None)
    library = open_library("starter", Settings(data_dir=tmp_path))
    asked = [json.loads(line) for line in QUESTIONS.read_text(encoding="utf-8").splitlines()]
    found = [any(_is_meant(one, row["passages"]) for one in library.search(row["question"], 4)) for row in asked]
    assert sum(found) >= 78
    shown = " ".join(one.text for one in library.search("How rich are people in Norway?", 20))
    assert "wealthy" not in shown


def _is_meant(passage: Passage, meant: list[dict[str, str]]) -> bool:
    text = f"{passage.text} {passage.id}".lower()
    return any(passage.id.startswith(one["id"]) and one["says"].lower() in text for one in meant)


@pytest.mark.lucene
@pytest.mark.parametrize("damage", ["cut", "gone", "junk"])
def test_a_broken_starter_library_is_built_again(tmp_path, monkeypatch, damage):
    few = factbook.countries()[:1]
    monkeypatch.setattr(factbook, "countries", lambda: few)
    settings = Settings(data_dir=tmp_path)
    folder = ensure_starter(settings, lambda done, total: None)
    newest = max(folder.glob("segments_*"))
    if damage == "gone":
        shutil.rmtree(folder)
    else:
        newest.write_bytes(newest.read_bytes()[:-9] if damage == "cut" else b"junk")
        with pytest.raises(LibraryError):
            open_library("starter", settings)
    ensure_starter(settings, lambda done, total: None)
    assert open_library("starter", settings).search("capital", 1)


@pytest.mark.lucene
def test_without_java_the_library_is_left_as_it_is(tmp_path, monkeypatch):
    few = factbook.countries()[:1]
    monkeypatch.setattr(factbook, "countries", lambda: few)
    settings = Settings(data_dir=tmp_path)
    folder = ensure_starter(settings, lambda done, total: None)
    before = sorted(file.name for file in folder.iterdir())

    def broken(*_):
        raise LibraryError("Java could not be started.")

    monkeypatch.setattr("assistant.retrieve.jvm.start", broken)
    monkeypatch.setattr(starter, "read_manifest", broken)
    with pytest.raises(LibraryError, match="Java could not be started"):
        ensure_starter(settings, lambda done, total: None)
    assert sorted(file.name for file in folder.iterdir()) == before


def test_the_version_follows_the_contents(monkeypatch):
    before = content_version()
    assert content_version() == before
    monkeypatch.setattr(factbook, "content_version", lambda: "9.9.9")
    assert content_version() != before
