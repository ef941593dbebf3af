"""Indexes that were made elsewhere: one that Pyserini's own command makes, and those that can't be used."""

from __future__ import annotations

from pathlib import Path

import pytest

from assistant.errors import LibraryError
from assistant.library.writer import writing
from assistant.retrieve.anserini import Anserini
from assistant.types import Passage
from tests.lucene import lucene_index

pytestmark = pytest.mark.lucene


def index(folder: Path, *options: str) -> Path:
    """Index two passages of ClueWeb22's form as the organisers do."""
    texts = ("Oat milk is made from oats and water.", "Milk holds lactose.")
    records = [
        {"id": f"clueweb22-en0000-00-00001:{n}", "contents": text, "url": "https://example.org/milk"}
        for n, text in enumerate(texts)
    ]
    return lucene_index(folder, records, *options)


@pytest.mark.parametrize(
    ("collection", "record"),
    [
        ("BeirFlatCollection", {"_id": "4983", "title": "Oats", "text": "Oats are a grain.", "metadata": {}}),
        ("BeirMultifieldCollection", {"_id": "4983", "title": "Oats", "text": "Oats are a grain.", "metadata": {}}),
        ("MsMarcoV2PassageCollection", {"pid": "4983", "passage": "Oats are a grain.", "spans": "", "docid": "d"}),
        (
            "MsMarcoV2DocCollection",
            {"docid": "4983", "url": "https://e.org", "title": "Oats", "headings": "", "segment": "Oats are a grain."},
        ),
        (
            "MsMarcoV2DocCollection",
            {"docid": "4983", "url": "https://e.org", "title": "Oats", "headings": "", "body": "Oats are a grain."},
        ),
    ],
)
def test_the_records_of_each_collection_are_read(tmp_path: Path, collection: str, record: dict[str, object]) -> None:
    [found] = Anserini(lucene_index(tmp_path, [record], "-storeRaw", collection=collection)).search("grain", 1)
    assert (found.id, found.title, found.text) == ("4983", record.get("title", ""), "Oats are a grain.")


def test_passages_are_found_by_their_own_ids(tmp_path: Path) -> None:
    opened = Anserini(index(tmp_path, "-storePositions", "-storeDocvectors", "-storeRaw"))
    assert len(opened) == 2
    [milk, oats] = opened.search("lactose in milk? (or not)", 5)
    assert milk.id == "clueweb22-en0000-00-00001:1"
    assert milk.text == "Milk holds lactose."
    assert milk.source == "https://example.org/milk"
    assert milk.score > oats.score > 0
    assert opened.search(" ", 5) == opened.search("milk", 0) == []


def test_an_index_without_texts_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LibraryError, match="doesn't hold its passages' texts; make it with"):
        Anserini(index(tmp_path))


def test_an_empty_index_and_a_missing_one_are_refused(tmp_path: Path) -> None:
    with pytest.raises(LibraryError, match="There is no index in"):
        Anserini(tmp_path / "nowhere")
    folder = tmp_path / "empty"
    folder.mkdir()
    with writing(folder) as writer:
        writer.commit({})
    with pytest.raises(LibraryError, match="holds no passages"):
        Anserini(folder)


def test_titles_are_not_part_of_the_text(tmp_path: Path) -> None:
    with writing(tmp_path) as writer:
        writer.add("d", [Passage("p", "Oats", "Oats are a grain.")])
        writer.commit({})
    [found] = Anserini(tmp_path).search("oats", 1)
    assert (found.title, found.text) == ("Oats", "Oats are a grain.")
