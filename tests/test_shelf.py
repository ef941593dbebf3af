"""The everyday shelf: its form, its lengths, and that it stays a set of different, self-contained passages."""

import re
from itertools import combinations
from pathlib import Path

import pytest

import assistant.library

SHELF = Path(assistant.library.__file__).parent / "shelf"
FILES = sorted(SHELF.glob("*.md"))
NOTICE = "Written for Sequitur."


def passages(file: Path) -> list[tuple[str, str]]:
    """(title, paragraph) of each passage of a shelf file, without the comment that holds its keywords."""
    sections = file.read_text(encoding="utf-8").split("\n## ")[1:]
    pairs = (re.sub(r"<!-- keywords: [^\n]+ -->\n", "", section).split("\n", 1) for section in sections)
    return [(title.strip(), text.strip()) for title, text in pairs]


EVERY = [(file.stem, title, text) for file in FILES for title, text in passages(file)]
IDS = [f"{stem}: {title}" for stem, title, _ in EVERY]


def words(text: str) -> list[str]:
    return re.findall(r"[a-z]{3,}", text.lower())


def test_about_two_hundred_passages_in_eight_subjects():
    assert len(FILES) == 8
    assert 195 <= len(EVERY) <= 230
    assert all(len(passages(file)) >= 22 for file in FILES)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_file_opens_with_its_subject_and_what_it_is(file: Path):
    head = file.read_text(encoding="utf-8").split("\n## ")[0]
    assert re.fullmatch(rf"# [^\n]+\n\n{NOTICE} [^\n]+advice\.\n", head)
    assert "general information" in head


@pytest.mark.parametrize(("stem", "title", "text"), EVERY, ids=IDS)
def test_a_passage_is_one_paragraph_of_60_to_120_words(stem: str, title: str, text: str):
    assert "\n" not in text
    assert 60 <= len(text.split()) <= 120
    assert text.endswith(".")
    assert 3 <= len(title) <= 70


@pytest.mark.parametrize(("stem", "title", "text"), EVERY, ids=IDS)
def test_a_passage_is_plain_text_in_the_third_person(stem: str, title: str, text: str):
    assert not re.search(r"(?<!-)\b(I|I'm|my|we|our)\b", text)
    assert not re.search(r"[*_`<>#\[\]|]|https?:", text)
    assert not re.search(r" {2}|[\x00-\x1f]", text)


@pytest.mark.parametrize(("stem", "title", "text"), EVERY, ids=IDS)
def test_a_passage_names_its_topic_in_the_text(stem: str, title: str, text: str):
    stems = {word[:4] for word in words(title)}
    assert stems & {word[:4] for word in words(text)}


def test_titles_are_unique():
    titles = [title.lower() for _, title, _ in EVERY]
    assert len(titles) == len(set(titles))


def test_no_sentence_stands_twice():
    sentences = [s for _, _, text in EVERY for s in re.split(r"(?<=[.!?]) ", text)]
    assert len(sentences) == len(set(sentences))


def test_no_two_passages_say_the_same():
    bags = [(title, set(words(text))) for _, title, text in EVERY]
    alike = [(a, b) for (a, x), (b, y) in combinations(bags, 2) if len(x & y) / len(x | y) > 0.4]
    assert alike == []


@pytest.mark.parametrize("topic", ["vegetarian", "lactose", "gluten", "nut allergy", "diabetes", "vitamin B12"])
def test_the_leading_examples_topics_are_there(topic: str):
    assert any(topic.lower() in f"{title} {text}".lower() for _, title, text in EVERY)
