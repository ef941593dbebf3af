"""`bench documents`: small documents, questions about them, a library that grows, and two programs that read PDFs."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

import pytest
from typer.testing import CliRunner

from assistant.__main__ import app
from assistant.errors import DataError
from assistant.library.passages import passages_of
from assistant.library.readers import read
from benchmarks import growth
from benchmarks.documents import DocumentQuestion, rank_of
from benchmarks.extractors import FILES, IN_PASSAGE, ON_PAGE, SENTENCES, PageSentence, compare_extractors
from tests.test_pdf_tables import PRICES, cells, drawn
from tests.test_readers import make_pdf

KEY = "The key hangs behind the door."


def lines(path: Path, *records: dict[str, object]) -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in records), encoding="utf-8")
    return path


def manual(folder: Path) -> Path:
    return make_pdf(
        folder / "a.pdf", f"Oats are a cereal of the north.\n{KEY}", "Tea is a drink that keeps people awake."
    )


def listed(*paths: Path) -> list[dict[str, object]]:
    return [{"document": one.name, "sha256": sha256(one.read_bytes()).hexdigest(), "source": "here"} for one in paths]


@pytest.mark.lucene
def test_documents_are_read_searched_and_grown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growth, "SIZES", (20, 40))
    monkeypatch.setattr(growth, "STEP", 10)
    asked = [
        ("Where does the key hang?", "hangs behind the door"),
        ("Which plants grow in water?", "keeps people awake"),
    ]
    questions = lines(
        tmp_path / "q.jsonl", *({"document": "a.pdf", "question": one, "says": said} for one, said in asked)
    )
    arguments = [
        "bench",
        "documents",
        str(manual(tmp_path)),
        "--questions",
        str(questions),
        "--largest",
        "20",
        "--json",
    ]
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    told = json.loads(result.stdout)
    assert told["document"]["a.pdf"]["pages"] == 2
    assert told["searched"]["with headings"] == {
        "questions": 2, "in the first 1": 1, "in the first 4": 1, "missed": [asked[1][0]],
    }  # fmt: skip
    assert list(told["passages"]) == ["20"]
    assert "text" not in told
    assert all(value for value in told["passages"]["20"].values())


def test_a_question_that_no_passage_answers_is_refused(tmp_path: Path) -> None:
    passages = passages_of(read(manual(tmp_path)), "a.pdf", "a.pdf")
    asked = DocumentQuestion("a.pdf", "Where does the key hang?", "in the hall")
    with pytest.raises(DataError, match=r"No passage of a\.pdf says 'in the hall'"):
        rank_of(asked, passages, passages)


@pytest.mark.lucene
def test_a_library_of_copies_has_as_many_passages_as_it_grew_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(growth, "SIZES", (20, 40))
    monkeypatch.setattr(growth, "STEP", 10)
    sizes = list[int]()
    made = growth.dense_retriever

    def counted(name, library, *others):
        sizes.append(len(library))
        return made(name, library, *others)

    monkeypatch.setattr(growth, "dense_retriever", counted)
    passages = passages_of(read(manual(tmp_path)), "a.pdf", "a.pdf")
    assert list(growth.growth(passages, ["Where is the key?", "What is tea?"], 40)) == ["20", "40"]
    assert (sizes[0], sizes[-1] > sizes[0]) == (20, True)


def test_what_was_seen_is_counted_on_its_page_and_in_one_passage(tmp_path: Path) -> None:
    texts = manual(tmp_path)
    table = drawn(tmp_path / "b.pdf", (72, 700, "These are the prices of the shop."), *cells(PRICES))
    seen = [("a.pdf", 1, KEY), ("a.pdf", 2, KEY), ("b.pdf", 1, "Green tea 80 g 3.50"), ("c.pdf", 1, "Not among them")]
    sentences = lines(tmp_path / "s.jsonl", *({"document": d, "page": n, "says": said} for d, n, said in seen))
    told = compare_extractors([texts, table], sentences, lines(tmp_path / "f.jsonl", *listed(texts, table)))
    for name in ("PDFium", "pypdf"):
        found = told[name]
        assert (found["documents"], found["sentences"], found[ON_PAGE], found[IN_PASSAGE]) == (2, 3, 2, 3)
        assert found[f"share {ON_PAGE}"]["value"] == 0.75
    assert told[f"more {IN_PASSAGE}"]["value"] == 0


def test_another_file_of_that_name_is_refused_and_one_of_no_sentence_is_passed_over(tmp_path: Path) -> None:
    sentences = lines(tmp_path / "s.jsonl", {"document": "a.pdf", "page": 1, "says": KEY})
    files = lines(tmp_path / "f.jsonl", {"document": "a.pdf", "sha256": "0", "source": "elsewhere"})
    with pytest.raises(DataError, match=r"a\.pdf is not the file"):
        compare_extractors([manual(tmp_path)], sentences, files)
    assert compare_extractors([make_pdf(tmp_path / "b.pdf", KEY)], sentences, files) == {}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("He said: the key hangs be-\nhind the DOOR", True),
        ("The key hangs behind the white door.", False),
        ("The key hangs behindthe door.", False),
        ("The key hangs behind the doors", False),
    ],
)
def test_words_have_to_be_whole_and_follow_each_other(text: str, found: bool) -> None:
    assert PageSentence("a.pdf", 1, KEY).is_in(text) is found


def test_every_sentence_is_of_a_file_that_is_listed() -> None:
    documents = {json.loads(line)["document"] for line in SENTENCES.read_text(encoding="utf-8").splitlines()}
    assert documents == {json.loads(line)["document"] for line in FILES.read_text(encoding="utf-8").splitlines()}
