"""Libraries from published indexes: a small one of Lucene's, packed as those are, on a server of our own."""

from __future__ import annotations

import errno
import io
import tarfile
from collections import namedtuple
from collections.abc import Callable, Iterator
from hashlib import md5
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from assistant.__main__ import app
from assistant.errors import LibraryError
from assistant.library import prebuilt as module
from assistant.library.index import add_documents, list_documents
from assistant.library.prebuilt import Prebuilt, fetch, prebuilt
from assistant.library.shelves import library_names, open_library, open_shelves, own_library
from assistant.llm import downloads
from assistant.retrieve import jvm
from assistant.settings import Settings
from assistant.upkeep.backup import own_libraries
from tests.hub import StandInHub, stand_in_hub
from tests.lucene import lucene_index

pytestmark = pytest.mark.lucene

FILE = "someone/indexes/small.tar.gz"
NAME = "small-v1.0"
RECORDS = [{"id": "7", "contents": "Oat milk is made from oats and water."}, {"id": "8", "contents": "Milk is white."}]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return lucene_index(tmp_path_factory.mktemp("made"), RECORDS, "-storeRaw", "-optimize")


@pytest.fixture(scope="module")
def packed(index: Path) -> bytes:
    return archive(lambda tar: tar.add(index, "lucene-index.small"))


@pytest.fixture
def hub(packed: bytes, monkeypatch: pytest.MonkeyPatch) -> Iterator[StandInHub]:
    monkeypatch.setattr(downloads, "PAUSE", 0.01)
    with stand_in_hub({FILE: packed}, monkeypatch) as running:
        yield running


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data_dir=tmp_path / "data")


@pytest.fixture
def published(hub: StandInHub, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Prebuilt]:
    """Has Pyserini know of the archive on the server; what it says of it may be changed."""

    def known(name: str = NAME, **told: object) -> Prebuilt:
        content = hub.files[FILE]
        entry = {
            "description": "Two passages.", "documents": 2, "size compressed (bytes)": len(content),
            "urls": [f"{hub.storage}/storage/{FILE}"], "md5": md5(content, usedforsecurity=False).hexdigest(), **told,
        }  # fmt: skip
        monkeypatch.setitem(jvm.call(module.index_table), name, entry)
        return prebuilt(name)

    return known


def archive(fill: Callable[[tarfile.TarFile], object]) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as tar:
        fill(tar)
    return content.getvalue()


def left(settings: Settings) -> list[str]:
    """What stands beside the libraries, but for their locks."""
    return sorted(one.name for one in settings.libraries_dir.iterdir() if one.suffix != ".lock")


def test_what_pyserini_knows_of_an_index() -> None:
    found = prebuilt("msmarco-v1-passage")
    assert found.addresses[0].startswith("https://")
    assert (found.passages, len(found.md5), found.library) == (8_841_823, 32, "msmarco-v1-passage")
    assert prebuilt("beir-v1.0.0-scifact.flat").library == "beir-v1_0_0-scifact_flat"


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("msmarco-v1-pasage", r"Pyserini has no index 'msmarco-v1-pasage'; perhaps one of: msmarco-v1-passage, "),
        ("scifact", r"perhaps one of: beir-v1\.0\.0-scifact\.flat, beir-v1\.0\.0-scifact\.multifield\.$"),
        ("?", "perhaps one of: msmarco-v1-passage"),
        ("msmarco-v1-passage-slim", "stores no texts to answer from; take 'msmarco-v1-passage'"),
    ],
)
def test_names_that_are_none_and_those_without_texts_are_refused(name: str, told: str) -> None:
    with pytest.raises(LibraryError, match=told):
        prebuilt(name)


def test_it_is_fetched_once_and_searched_alone_and_with_own_documents(
    published: Callable[..., Prebuilt],
    hub: StandInHub,
    settings: Settings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    published()
    told = CliRunner().invoke(app, ["index", "--prebuilt", NAME, "--data-dir", str(settings.data_dir)])
    assert "The library is ready; search it with: --library small-v1_0" in told.output, told.output
    assert library_names(settings) == left(settings) == ["small-v1_0"]
    [best, _] = open_library("small-v1_0", settings).search("oats in milk", 5)
    assert (best.id, best.text) == ("7", RECORDS[0]["contents"])
    assert [(one.name, one.passages) for one in list_documents("small-v1_0", settings)] == [("Two passages.", 2)]

    (tmp_path / "own.txt").write_text("My oats stand on the shelf.")
    add_documents(own_library("ann"), [tmp_path / "own.txt"], settings)
    both = open_shelves("small-v1_0", "ann", settings)
    assert {one.text for one in both.search("oats", 5)} == {RECORDS[0]["contents"], "My oats stand on the shelf."}

    asked = len(hub.asked)
    again = CliRunner().invoke(app, ["index", "--prebuilt", NAME, "--data-dir", str(settings.data_dir)])
    assert "was there already" in again.output
    assert len(hub.asked) == asked
    assert "Bearer hf_secret" not in hub.keys_for_files, "a key of the hub was shown to another server"


def test_it_can_not_be_changed_and_is_in_no_backup(
    published: Callable[..., Prebuilt], settings: Settings, tmp_path: Path
) -> None:
    fetch(published(), settings)
    (tmp_path / "own.txt").write_text("Oats.")
    with pytest.raises(LibraryError, match="fetched whole and can't be changed"):
        add_documents("small-v1_0", [tmp_path / "own.txt"], settings)
    add_documents("mine", [tmp_path / "own.txt"], settings)
    assert own_libraries(settings) == ["mine"]


def test_another_library_of_its_name_is_left_alone(
    published: Callable[..., Prebuilt], settings: Settings, tmp_path: Path
) -> None:
    (tmp_path / "own.txt").write_text("Oats.")
    add_documents("small-v1_0", [tmp_path / "own.txt"], settings)
    with pytest.raises(LibraryError, match=r"another library 'small-v1_0'; delete that first"):
        fetch(published(), settings)
    assert len(open_library("small-v1_0", settings)) == 1


def test_what_broke_off_goes_on_from_there(
    published: Callable[..., Prebuilt], hub: StandInHub, settings: Settings, packed: bytes
) -> None:
    hub.cut = [1000, 0, 0, 0]
    with pytest.raises(LibraryError, match=r"'small-v1.0' can't be fetched: .*cut short at 1,000 of"):
        fetch(published(), settings)
    assert library_names(settings) == []
    fetch(published(), settings)
    assert hub.ranges_asked()[-1] == "bytes=1000-"
    assert len(open_library("small-v1_0", settings)) == 2


def test_a_second_address_is_asked_where_the_first_gives_nothing(
    published: Callable[..., Prebuilt], hub: StandInHub, settings: Settings
) -> None:
    fetch(published(urls=["http://127.0.0.1:9/x.tar.gz", f"{hub.storage}/storage/{FILE}"]), settings)
    assert len(open_library("small-v1_0", settings)) == 2


def test_without_a_network_it_is_told_in_a_sentence(published: Callable[..., Prebuilt], settings: Settings) -> None:
    published(urls=["http://127.0.0.1:9/x.tar.gz"])
    told = CliRunner().invoke(app, ["index", "--prebuilt", NAME, "--data-dir", str(settings.data_dir)])
    assert isinstance(told.exception, LibraryError)
    assert "'small-v1.0' can't be fetched: " in str(told.exception)
    assert "ConnectError" in str(told.exception)
    assert "\n" not in str(told.exception)


def test_a_server_that_refuses_is_named(
    published: Callable[..., Prebuilt], hub: StandInHub, settings: Settings
) -> None:
    hub.status = 404
    with pytest.raises(LibraryError, match=r"can't be fetched: localhost answers 404\.$"):
        fetch(published(), settings)


def test_what_has_another_md5_is_not_kept(published: Callable[..., Prebuilt], settings: Settings) -> None:
    with pytest.raises(LibraryError, match="another MD5 than was published; nothing of it was kept"):
        fetch(published(md5="0" * 32), settings)
    assert not any(settings.libraries_dir.rglob("*.tar.gz"))
    assert library_names(settings) == []


def test_an_index_without_texts_is_not_kept(
    published: Callable[..., Prebuilt], hub: StandInHub, settings: Settings, tmp_path: Path
) -> None:
    bare = lucene_index(tmp_path, RECORDS)
    hub.files[FILE] = archive(lambda tar: tar.add(bare, "lucene-index.small"))
    with pytest.raises(LibraryError, match=r"'small-v1.0' stores no texts of its passages"):
        fetch(published(), settings)
    assert left(settings) == []


def test_a_python_that_cannot_unpack_safely_is_told_before_anything_is_fetched(
    published: Callable[..., Prebuilt], settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(tarfile, "data_filter")
    with pytest.raises(LibraryError, match=r"use 3\.11\.4 or a later one"):
        fetch(published(), settings)
    assert left(settings) == []


def _climbing(tar: tarfile.TarFile) -> None:
    member = tarfile.TarInfo("../../../outside/segments_1")
    tar.addfile(member, io.BytesIO())


def _linking(tar: tarfile.TarFile) -> None:
    member = tarfile.TarInfo("index/segments_1")
    member.type, member.linkname = tarfile.SYMTYPE, "/etc/passwd"
    tar.addfile(member)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (archive(_climbing), "can't be unpacked"),
        (archive(_linking), "can't be unpacked"),
        (b"no archive" * 50, "can't be unpacked"),
        (archive(lambda _: None), "holds 0 indexes"),
    ],
    ids=["climbing", "linking", "no archive", "empty"],
)
def test_what_is_no_index_is_not_kept_and_writes_nothing_elsewhere(
    published: Callable[..., Prebuilt], hub: StandInHub, settings: Settings, content: bytes, told: str
) -> None:
    hub.files[FILE] = content
    with pytest.raises(LibraryError, match=told):
        fetch(published(), settings)
    assert left(settings) == []
    assert not any(settings.data_dir.parent.rglob("segments_1"))


def test_a_disk_without_room_is_told_before_anything_is_fetched(
    published: Callable[..., Prebuilt], hub: StandInHub, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(downloads.shutil, "disk_usage", lambda _: usage(10, 10, 0))
    with pytest.raises(LibraryError, match=r"GiB are needed on the disk of .* and 0\.0 GiB are free"):
        fetch(published(), settings)
    assert hub.ranges_asked() == []


def test_a_disk_that_fills_up_is_told_and_what_came_is_kept(
    published: Callable[..., Prebuilt], settings: Settings, hub: StandInHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tarfile.TarFile, "extract", full)
    with pytest.raises(LibraryError, match=r"can't be written \(No space left on device\); free space"):
        fetch(published(), settings)
    monkeypatch.undo()
    hub.status = 503  # nothing more is asked for
    fetch(published(), settings)
    assert len(open_library("small-v1_0", settings)) == 2
