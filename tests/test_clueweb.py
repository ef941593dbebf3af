"""ClueWeb22's way into an index: synthetic WARC records and clean texts, cut into passages, indexed by Anserini."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from assistant.commands import ikat
from assistant.errors import DataError
from assistant.ikat.clueweb import (
    Document,
    build_index,
    collection_files,
    compare_hashes,
    documents,
    passage_files,
    segment,
    write_passages,
)
from assistant.protocols import silent
from assistant.retrieve.anserini import Anserini

OATS = "<html><head><title>Oat milk</title><script>no()</script></head><body><nav>Menu</nav>{}</body></html>"


def sentence(n: int) -> str:
    return f"Sentence number {n} is about oats."


def page(count: int) -> str:
    return OATS.format("".join(f"<p>{sentence(n)}</p>" for n in range(count)))


def warc(path: Path, pages: dict[str, str], header: str = "ClueWeb22-ID") -> Path:
    """A gzipped WARC of pages by their ids, behind the usual record about the file itself."""
    with path.open("wb") as file:
        writer = WARCWriter(file, gzip=True)
        writer.write_record(writer.create_warcinfo_record(path.name, {"software": "a test"}))
        for identity, markup in pages.items():
            http = StatusAndHeaders("200 OK", [("Content-Type", "text/html")], protocol="HTTP/1.1")
            record = writer.create_warc_record(
                f"https://example.org/{identity}",
                "response",
                payload=io.BytesIO(markup.encode()),
                http_headers=http,
                warc_headers_dict={header: identity} if header else {},
            )
            writer.write_record(record)
    return path


def clean_texts(path: Path, texts: dict[str, str]) -> Path:
    """The collection's own clean texts, compressed as the name says."""
    records = [
        {"URL": "https://example.org/\n", "URL-hash": "F00", "Language": "en", "ClueWeb22-ID": one, "Clean-Text": text}
        for one, text in texts.items()
    ]
    lines = "".join(json.dumps(record) + "\n" for record in records)
    opened: Any = {".gz": gzip.open, ".bz2": bz2.open}.get(path.suffix, open)
    with opened(path, "wt") as file:
        file.write(lines)
    return path


@pytest.mark.parametrize("header", ["ClueWeb22-ID", "WARC-TREC-ID"])
def test_pages_are_read_as_text_with_their_ids(tmp_path: Path, header: str) -> None:
    [read] = documents(warc(tmp_path / "en0000-00.warc.gz", {"clueweb22-en0000-00-00007": page(2)}, header))
    assert read.id == "clueweb22-en0000-00-00007"
    assert read.url == "https://example.org/clueweb22-en0000-00-00007"
    assert read.text.splitlines() == ["Oat milk", sentence(0), sentence(1)]


@pytest.mark.parametrize("ending", ["json", "json.gz", "json.bz2"])
def test_clean_texts_are_read_however_compressed(tmp_path: Path, ending: str) -> None:
    [read] = documents(clean_texts(tmp_path / f"en0000-00.{ending}", {"clueweb22-en0000-00-00001": "Oats.\nMilk."}))
    assert read == Document("clueweb22-en0000-00-00001", "https://example.org/", "Oats.\nMilk.")


@pytest.mark.parametrize(
    ("count", "starts"), [(0, []), (1, [0]), (10, [0]), (11, [0, 5]), (15, [0, 5]), (16, [0, 5, 10])]
)
def test_ten_sentences_make_a_passage_and_the_next_begins_at_the_sixth(count: int, starts: list[int]) -> None:
    text = "\n".join(map(sentence, range(count)))
    passages = segment(Document("clueweb22-en0000-00-00001", "https://example.org/", text))
    assert [passage.id for passage in passages] == [f"clueweb22-en0000-00-00001:{n}" for n in range(len(starts))]
    assert [passage.text for passage in passages] == [
        " ".join(map(sentence, range(start, min(start + 10, count)))) for start in starts
    ]


def test_a_long_document_is_cut_before_it_is_segmented() -> None:
    passages = segment(Document("d", "", " ".join(map(sentence, range(2000)))))
    assert sum(len(passage.text) for passage in passages[::2]) <= 10_000


def test_passages_are_written_file_by_file_and_not_twice(tmp_path: Path) -> None:
    source = tmp_path / "txt" / "en0000"
    source.mkdir(parents=True)
    text = " ".join(map(sentence, range(12)))
    clean_texts(source / "en0000-00.json.gz", {"clueweb22-en0000-00-00000": text, "clueweb22-en0000-00-00001": ""})
    clean_texts(source / "en0000-01.json.gz", {"clueweb22-en0000-01-00000": text})
    into = tmp_path / "passages"
    files = collection_files([tmp_path / "txt"])
    assert write_passages(files[:1], into, silent) == 2
    assert write_passages(files, into, silent) == 2
    assert [one.name for one in sorted(into.iterdir())] == [
        "en0000-en0000-00.jsonl.gz",
        "en0000-en0000-01.jsonl.gz",
    ]
    with gzip.open(into / "en0000-en0000-00.jsonl.gz", "rt") as lines:
        records = [json.loads(line) for line in lines]
    assert [record["id"] for record in records] == ["clueweb22-en0000-00-00000:0", "clueweb22-en0000-00-00000:1"]
    assert records[0]["url"] == "https://example.org/"


def test_no_file_is_passed_over_for_one_that_is_called_like_it(tmp_path: Path) -> None:
    parts = [tmp_path / f"data.part{n}.jsonl.gz" for n in (1, 2)]
    for part in parts:
        clean_texts(part, {part.name: sentence(1)})
    into = tmp_path / "passages"
    assert write_passages([*parts, parts[0]], into, silent) == 2
    twin = warc(tmp_path / "data.part1.warc.gz", {"clueweb22-en0000-00-00000": page(1)})
    with pytest.raises(DataError, match=r"part1\.jsonl\.gz and of .*part1\.warc\.gz would be one file; rename one"):
        write_passages([parts[0], twin], tmp_path / "others", silent)
    assert not (tmp_path / "others").exists()


def test_the_tracks_hashes_tell_which_passages_are_cut_otherwise(tmp_path: Path) -> None:
    file = clean_texts(tmp_path / "a.json", {"clueweb22-en0000-00-00000": " ".join(map(sentence, range(12)))})
    write_passages([file], tmp_path / "out", silent)
    first = " ".join(map(sentence, range(10)))
    digest = hashlib.md5(first.encode()).hexdigest()
    hashes = tmp_path / "hashes.tsv.bz2"
    with bz2.open(hashes, "wt") as out:
        out.write(f"clueweb22-en0000-00-00000\t0\t{digest}\nclueweb22-en0000-00-00000\t1\t{digest}\nother\t0\tx\n")
    assert compare_hashes(list((tmp_path / "out").iterdir()), hashes) == (2, ["clueweb22-en0000-00-00000:1"])
    broken = tmp_path / "broken.tsv"
    broken.write_text("one two\n")
    with pytest.raises(DataError, match=r"broken\.tsv, line 1, does not read 'document passage MD5'"):
        compare_hashes([], broken)


def test_broken_files_are_named_and_leave_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"record 2, has no ClueWeb22-ID in its header"):
        list(documents(warc(tmp_path / "a.warc.gz", {"x": page(1)}, header="")))
    no_text = tmp_path / "b.json"
    for fields in ('"ClueWeb22-ID": "x"', '"ClueWeb22-ID": "x", "Clean-Text": null', '"Clean-Text": ' + "[" * 100_000):
        no_text.write_text(f"{{{fields}}}\n")
        with pytest.raises(DataError, match=r"b\.json, line 1, has no ClueWeb22-ID or no Clean-Text"):
            write_passages([no_text], tmp_path / "out", silent)
    whole = clean_texts(tmp_path / "c.json.gz", {"x": "Oats. " * 999}).read_bytes()
    cut = tmp_path / "d.json.gz"
    cut.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match=r"d\.json\.gz can't be read to its end"):
        write_passages([cut], tmp_path / "out", silent)
    assert list((tmp_path / "out").iterdir()) == []
    not_warc = tmp_path / "e.warc"
    not_warc.write_text("This is no WARC file.")
    with pytest.raises(DataError, match=r"e\.warc, record 1, has no ClueWeb22-ID"):
        list(documents(not_warc))
    with pytest.raises(DataError, match="is no file of ClueWeb22"):
        list(documents(tmp_path / "f.pdf"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="No file of ClueWeb22 is in"):
        collection_files([tmp_path / "empty"])
    with pytest.raises(DataError, match="There is no"):
        collection_files([tmp_path / "nowhere"])


@pytest.mark.parametrize(
    "line",
    [
        "no JSON",
        '{"id": "x"}',
        '{"contents": "x"}',
        "[]",
        '{"id": [], "contents": ""}',
        "[" * 100_000,
        '{"id": "x", "contents": "\\ud800"}',
    ],
)
def test_a_file_that_holds_no_passages_is_named_where_they_are_compared(tmp_path: Path, line: str) -> None:
    broken, hashes = tmp_path / "a.jsonl", tmp_path / "hashes.tsv"
    broken.write_text(f'{{"id": "x:0", "contents": "x"}}\n{line}\n')
    hashes.write_text("x 0 y\n")
    with pytest.raises(DataError, match=r"a\.jsonl, line 2, is no passage; take the file out of the folder"):
        compare_hashes([broken], hashes)


def test_passages_are_found_packed_and_plain_as_they_are_indexed(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    files = [tmp_path / "a.jsonl", tmp_path / "b.jsonl.gz", tmp_path / "below" / "c.json"]
    for file in (*files, tmp_path / "d.jsonl.gz.part"):
        file.write_text("")
    assert passage_files(tmp_path) == files


def test_a_file_in_the_place_of_a_folder_is_told(tmp_path: Path) -> None:
    text = clean_texts(tmp_path / "a.json", {"clueweb22-en0000-00-00000": sentence(1)})
    passages, file = tmp_path / "passages", tmp_path / "file"
    file.write_text("mine")
    write_passages([text], passages, silent)
    with pytest.raises(DataError, match="is not an empty folder; choose another for the index"):
        build_index(passages, file)
    with pytest.raises(DataError, match=r"The passages can't be written to .*; choose another"):
        write_passages([text], file, silent)
    assert file.read_text() == "mine"


@pytest.mark.parametrize("kept", [0.4, 0.7, 0.95])
def test_a_page_that_was_cut_off_is_no_page(tmp_path: Path, kept: float) -> None:
    texts = {f"clueweb22-en0000-00-0000{n}": page(40) for n in range(3)}
    whole = warc(tmp_path / "a.warc.gz", texts).read_bytes()
    cut = tmp_path / "b.warc.gz"
    cut.write_bytes(whole[: int(len(whole) * kept)])
    with pytest.raises(DataError, match=r"b\.warc\.gz.* can't be read to its end|was cut off"):
        list(documents(cut))


def typed(*words: object) -> Result:
    app = typer.Typer()
    app.command("ikat")(ikat.ikat)
    app.command("ikat-index")(ikat.index)
    return CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)


def test_the_command_says_what_is_missing_and_compares_plain_passages(tmp_path: Path) -> None:
    passages, hashes = tmp_path / "passages", tmp_path / "hashes.tsv"
    words = ["ikat-index", "--passages", passages]
    hashes.write_text(f"x 0 {hashlib.md5(b'Oats.').hexdigest()}\n")
    with pytest.raises(DataError, match="name files of ClueWeb22 to cut, --hashes to compare with, or --out"):
        typed(*words)
    with pytest.raises(DataError, match="There are no passages in"):
        typed(*words, "--hashes", hashes)
    passages.mkdir()
    with pytest.raises(DataError, match="There are no passages in"):
        typed(*words, "--hashes", hashes)
    (passages / "a.jsonl").write_text('{"id": "x:0", "contents": "Oats."}\n')
    assert "Of 1 passages that the track knows, 0" in typed(*words, "--hashes", hashes).stdout


@pytest.mark.lucene
def test_from_pages_to_an_index_in_one_command(tmp_path: Path) -> None:
    warc(tmp_path / "en0000-00.warc.gz", {"clueweb22-en0000-00-00007": page(16)})
    words = ["ikat-index", tmp_path / "en0000-00.warc.gz", "--passages", tmp_path / "cut", "--out", tmp_path / "index"]
    result = typed(*words)
    assert result.exit_code == 0
    assert "3 passages were added" in result.stdout.replace("\n", "")
    typed("ikat-index", "--passages", tmp_path / "cut", "--out", tmp_path / "again")
    assert len(Anserini(tmp_path / "again")) == 3
    opened = Anserini(tmp_path / "index")
    [best, *_] = opened.search("sentence number 15", 1)
    assert best.id == "clueweb22-en0000-00-00007:2"
    assert best.text.endswith(sentence(15))
    with pytest.raises(DataError, match="is not an empty folder"):
        build_index(tmp_path / "cut", tmp_path / "index")
    with pytest.raises(DataError, match="There are no passages in"):
        build_index(tmp_path / "nothing", tmp_path / "other")


def test_reading_the_collection_starts_no_java() -> None:
    code = "import sys; import assistant.ikat.clueweb; sys.exit('jnius' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, cwd=Path(__file__).parents[1]).returncode == 0
