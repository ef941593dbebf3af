import json
import os
import re
import signal
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

import pytest
from filelock import FileLock
from typer.testing import CliRunner

from assistant.errors import LibraryError
from assistant.library import index, shelves
from assistant.library.corpus import corpus_retriever
from assistant.library.index import add_documents, list_documents, remove_documents
from assistant.library.passages import passages_of
from assistant.library.shelves import library_names, open_library, open_shelves, own_library, remove_library
from assistant.library.writer import writing
from assistant.protocols import silent
from assistant.retrieve import jvm
from assistant.retrieve.bm25 import read_manifest, reading
from assistant.retrieve.fusion import fuse
from assistant.retrieve.own_documents import WithOwnDocuments
from assistant.settings import Settings
from assistant.text.chunks import Block
from assistant.types import Passage
from tests.test_readers import odd_files

pytestmark = pytest.mark.lucene
ROOT = Path(__file__).parents[1]


@pytest.fixture
def settings(tmp_path) -> Settings:
    return Settings(data_dir=tmp_path / "data")


@pytest.fixture
def folder(tmp_path) -> Path:
    folder = tmp_path / "docs"
    (folder / "sub").mkdir(parents=True)
    (folder / "zebra.txt").write_text("The zebra eats grass.")
    (folder / "sub" / "rice.md").write_text("# Rice\n\nRice is boiled in water.")
    (folder / "records.jsonl").write_text('{"id": "r1", "title": "Oats", "contents": "Oats are a cereal."}\n')
    return folder


def told(outcomes) -> dict[str, tuple[str, int]]:
    return {one.name: (one.status, one.passages) for one in outcomes}


def found(settings: Settings, query: str, library: str = "docs") -> list[str]:
    return [one.text for one in open_library(library, settings).search(query, 5)]


def test_a_file_whose_name_is_not_utf_8_is_indexed(settings, folder):
    (folder / os.fsdecode(b"caf\xe9.txt")).write_text("Coffee is roasted.")
    outcomes = told(add_documents("docs", [folder], settings))
    assert outcomes["docs/caf?.txt"] == ("added", 1)
    assert found(settings, "coffee") == ["Coffee is roasted."]
    assert set(told(add_documents("docs", [folder], settings)).values()) == {("unchanged", 1)}


def jsonl(path: Path, *records: tuple[str, str]) -> Path:
    path.write_text("".join(json.dumps({"id": one, "contents": text}) + "\n" for one, text in records))
    return path


def held(library: str, settings: Settings) -> dict[str, Passage]:
    return {passage.id: passage for passage in open_library(library, settings).passages()}


def test_a_folder_is_indexed_with_all_below_it(settings, folder):
    outcomes = add_documents("docs", [folder], settings)
    assert told(outcomes) == {
        "docs/zebra.txt": ("added", 1),
        "docs/sub/rice.md": ("added", 1),
        "docs/records.jsonl": ("added", 1),
    }
    passage = open_library("docs", settings).search("zebra", 1)[0]
    assert (passage.title, passage.text, passage.source) == ("zebra", "The zebra eats grass.", "docs/zebra.txt")
    assert held("docs", settings)["r1"].title == "Oats"
    assert held("docs", settings)[passage.id].text == passage.text
    assert library_names(settings) == ["docs"]


def test_unchanged_files_are_passed_over(settings, folder):
    add_documents("docs", [folder], settings)
    before = sorted(one.name for one in (settings.libraries_dir / "docs").glob("segments_*"))
    assert {status for status, _ in told(add_documents("docs", [folder], settings)).values()} == {"unchanged"}
    assert sorted(one.name for one in (settings.libraries_dir / "docs").glob("segments_*")) == before


def test_a_changed_file_replaces_its_passages(settings, folder):
    add_documents("docs", [folder], settings)
    (folder / "zebra.txt").write_text("The okapi eats leaves.")
    assert told(add_documents("docs", [folder], settings))["docs/zebra.txt"] == ("replaced", 1)
    assert found(settings, "grass") == []
    assert found(settings, "okapi") == ["The okapi eats leaves."]
    assert len(open_library("docs", settings)) == 3


def test_a_file_that_is_gone_from_an_indexed_folder_is_removed(settings, folder):
    add_documents("docs", [folder], settings)
    (folder / "zebra.txt").unlink()
    assert told(add_documents("docs", [folder], settings))["docs/zebra.txt"] == ("removed", 1)
    assert found(settings, "zebra") == []


def test_a_hidden_file_that_was_indexed_by_name_stays_when_its_folder_is_indexed(settings, folder):
    hidden = folder / ".hid" / "c.txt"
    hidden.parent.mkdir()
    hidden.write_text("The quagga is extinct.")
    add_documents("docs", [hidden], settings)
    assert "removed" not in {one.status for one in add_documents("docs", [folder], settings)}
    assert found(settings, "quagga") == ["The quagga is extinct."]
    hidden.unlink()
    assert told(add_documents("docs", [folder], settings))["c.txt"] == ("removed", 1)


def test_a_file_that_cant_be_looked_at_for_now_stays(settings, folder, tmp_path, monkeypatch):
    add_documents("docs", [folder], settings)
    (folder / "sub").rename(tmp_path / "away")
    stat = Path.stat

    def refused(path: Path, **how: bool) -> os.stat_result:
        if path.name == "rice.md":
            raise PermissionError(13, "Permission denied", str(path))
        return stat(path, **how)

    with monkeypatch.context() as locked:
        locked.setattr(Path, "stat", refused)
        assert "docs/sub/rice.md" not in told(add_documents("docs", [folder], settings))
    assert found(settings, "rice") == ["Rice is boiled in water."]
    assert told(add_documents("docs", [folder], settings))["docs/sub/rice.md"] == ("removed", 1)


@pytest.mark.parametrize("gone", ["rice.md", "sub"])
def test_a_file_whose_place_something_else_took_is_removed(settings, folder, gone):
    add_documents("docs", [folder], settings)
    (folder / "sub" / "rice.md").unlink()
    if gone == "rice.md":
        (folder / "sub" / "rice.md").mkdir()
    else:
        (folder / "sub").rmdir()
        (folder / "sub").write_text("")
    assert told(add_documents("docs", [folder], settings))["docs/sub/rice.md"] == ("removed", 1)


def test_indexing_one_file_leaves_the_others(settings, folder):
    add_documents("docs", [folder], settings)
    assert told(add_documents("docs", [folder / "zebra.txt"], settings)) == {"zebra.txt": ("unchanged", 1)}
    assert len(list_documents("docs", settings)) == 3


def test_what_cant_be_read_is_named_and_the_rest_is_indexed(settings, folder):
    (folder / "empty.txt").write_text("")
    (folder / "bad.jsonl").write_text('{"id": "b1", "contents": "never seen"}\n{oops\n')
    (folder / "image.png").write_bytes(b"\x89PNG")
    (folder / ".hidden.txt").write_text("not looked at")
    outcomes = add_documents("docs", [folder, folder / "missing.txt"], settings)
    skipped = {one.name: one.reason for one in outcomes if one.status == "skipped"}
    assert set(skipped) == {"docs/empty.txt", "docs/bad.jsonl", "docs/image.png", str(folder / "missing.txt")}
    assert "line 2" in skipped["docs/bad.jsonl"]
    assert len(open_library("docs", settings)) == 3
    assert found(settings, "never seen") == []


def test_odd_files_are_skipped_and_the_rest_is_indexed(settings, tmp_path):
    long = jsonl(tmp_path / "id.jsonl", ("x" * 40_000, "never seen"))
    good = tmp_path / "zebra.txt"
    good.write_text("The zebra eats grass.")
    odd = [*odd_files(tmp_path).values(), long]
    outcomes = told(add_documents("docs", [*odd, good], settings, uploaded=True))
    assert outcomes == {one.name: ("skipped", 0) for one in odd} | {"zebra.txt": ("added", 1)}
    assert found(settings, "zebra") == ["The zebra eats grass."]


def test_a_path_the_system_cant_look_at_is_skipped_with_its_reason(settings, folder):
    long = folder / ("x" * 300)
    skipped, *rest = sorted(add_documents("docs", [long, folder], settings), key=lambda one: one.status != "skipped")
    assert (skipped.name, "too long" in skipped.reason) == (long.name, True)
    assert {one.status for one in rest} == {"added"}


def test_a_file_that_broke_keeps_what_was_indexed_of_it(settings, folder):
    add_documents("docs", [folder], settings)
    (folder / "records.jsonl").write_text("{oops")
    outcome = next(one for one in add_documents("docs", [folder], settings) if one.status == "skipped")
    assert "kept" in outcome.reason
    assert found(settings, "cereal") == ["Oats are a cereal."]


def test_nothing_readable_makes_no_library(settings, tmp_path):
    (tmp_path / "empty.txt").write_text("")
    assert told(add_documents("docs", [tmp_path / "empty.txt"], settings)) == {"empty.txt": ("skipped", 0)}
    assert library_names(settings) == []
    with pytest.raises(LibraryError, match="no complete index"):
        open_library("docs", settings)


@pytest.mark.parametrize("by", ["name", "id", "path", "folder"])
def test_documents_are_removed(settings, folder, by):
    add_documents("docs", [folder], settings)
    rice = next(one for one in list_documents("docs", settings) if one.name.endswith("rice.md"))
    key = {"name": rice.name, "id": rice.id, "path": folder / "sub" / "rice.md", "folder": folder / "sub"}[by]
    assert told(remove_documents("docs", [key], settings)) == {"docs/sub/rice.md": ("removed", 1)}
    assert found(settings, "rice") == []
    assert [one.name for one in list_documents("docs", settings)] == ["docs/records.jsonl", "docs/zebra.txt"]


def test_removing_what_isnt_there_says_so(settings, folder):
    add_documents("docs", [folder], settings)
    assert told(remove_documents("docs", ["nothing"], settings)) == {"nothing": ("skipped", 0)}
    with pytest.raises(LibraryError, match="no library 'other'"):
        remove_documents("other", ["x"], settings)


def test_an_uploaded_document_is_known_by_its_name(settings, tmp_path):
    for n, text in enumerate(["First version.", "Second version."]):
        (tmp_path / str(n)).mkdir()
        (tmp_path / str(n) / "notes.txt").write_text(text)
    assert told(add_documents("docs", [tmp_path / "0" / "notes.txt"], settings, uploaded=True)) == {
        "notes.txt": ("added", 1)
    }
    again = add_documents("docs", [tmp_path / "1" / "notes.txt"], settings, uploaded=True)
    assert told(again) == {"notes.txt": ("replaced", 1)}
    assert found(settings, "version") == ["Second version."]
    assert list_documents("docs", settings)[0].path == ""


def test_of_two_files_of_one_name_in_an_upload_the_second_is_skipped(settings, tmp_path):
    files = [tmp_path / str(n) / "notes.txt" for n in range(2)]
    for n, file in enumerate(files):
        file.parent.mkdir()
        file.write_text(f"Version {n}.")
    outcomes = add_documents("docs", files, settings, uploaded=True)
    assert {(one.name, one.status) for one in outcomes} == {("notes.txt", "skipped"), ("notes.txt", "added")}
    assert "another file of this name" in next(one.reason for one in outcomes if one.status == "skipped")
    assert found(settings, "version") == ["Version 0."]


def test_two_files_of_one_name_are_two_documents(settings, folder):
    (folder / "sub" / "zebra.txt").write_text("Another zebra sleeps.")
    add_documents("docs", [folder / "zebra.txt", folder / "sub" / "zebra.txt"], settings)
    assert sorted(found(settings, "zebra")) == ["Another zebra sleeps.", "The zebra eats grass."]


def test_records_of_two_files_may_have_the_same_ids(settings, tmp_path):
    one, two = jsonl(tmp_path / "one.jsonl", ("1", "apples")), jsonl(tmp_path / "two.jsonl", ("1", "pears"))
    add_documents("docs", [one, two], settings)
    searched = open_library("docs", settings)
    assert (searched.search("apples", 1)[0].id, held("docs", settings)["1"].text) == ("1", "apples")
    assert searched.search("pears", 1)[0].id.endswith("-1")
    assert len({searched.search(query, 1)[0].id for query in ("apples", "pears")}) == 2


def test_own_records_hide_none_of_a_librarys_that_have_the_same_ids(settings, tmp_path):
    add_documents("docs", [jsonl(tmp_path / "one.jsonl", ("1", "red apples"))], settings)
    add_documents(own_library("ann"), [jsonl(tmp_path / "two.jsonl", ("1", "red pears"))], settings, uploaded=True)
    ranking = open_shelves("docs", "ann", settings).search("red", 5)
    assert {one.text for one in fuse({"question": ranking}, 5)} == {"red apples", "red pears"}


def test_own_records_indexed_without_the_documents_id_stay_until_they_change(settings, tmp_path, monkeypatch):
    own, file = own_library("ann"), jsonl(tmp_path / "mine.jsonl", ("1", "apples"))
    with monkeypatch.context() as before:
        before.setattr(index, "OWN_PREFIX", "none's-")
        add_documents(own, [file], settings, uploaded=True)
    assert told(add_documents(own, [file], settings, uploaded=True)) == {"mine.jsonl": ("unchanged", 1)}
    assert held(own, settings)["1"].text == "apples"
    jsonl(file, ("1", "pears"))
    assert told(add_documents(own, [file], settings, uploaded=True)) == {"mine.jsonl": ("replaced", 1)}
    assert found(settings, "apples", own) == []
    document = list_documents(own, settings)[0].id
    assert held(own, settings)[f"{document}-1"].text == "pears"
    remove_documents(own, [document], settings)
    assert len(open_library(own, settings)) == 0


def test_ids_of_long_records_are_numbered():
    long = Block(" ".join(f"Sentence number {n} is here." for n in range(60)), "T", id="x")
    passages = passages_of([long, Block("Short.", "T", id="y")], "doc", "a.jsonl")
    assert [one.id for one in passages] == ["x", "x#2", "x#3", "y"]
    paged = passages_of([Block("One.", "T", "page 3")], "doc", "a.pdf")
    assert (paged[0].id, paged[0].source) == ("doc-1", "a.pdf, page 3")


def test_progress_ends_where_it_should(settings, folder):
    seen: list[tuple[int, int]] = []
    add_documents("docs", [folder], settings, lambda done, total: seen.append((done, total)))
    assert seen[-1][0] == seen[-1][1] == sum(one.stat().st_size for one in folder.rglob("*") if one.is_file())
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def test_the_starter_library_is_not_for_documents(settings, folder):
    with pytest.raises(LibraryError, match="comes with Sequitur"):
        add_documents("starter", [folder], settings)
    with pytest.raises(LibraryError, match="comes with Sequitur"):
        remove_documents("starter", ["factbook"], settings)


@pytest.mark.parametrize("name", ["", "../x", "a/b", "A", "-x", "x" * 65, "a b", "ü"])
def test_names_that_cant_be_libraries(settings, folder, name):
    with pytest.raises(LibraryError, match="can't name a library"):
        add_documents(name, [folder], settings)


def test_a_users_own_documents_are_searched_beside_a_library(settings, folder, tmp_path):
    add_documents("docs", [folder], settings)
    (tmp_path / "mine.txt").write_text("My zebra is called Zoe.")
    add_documents(own_library("ann"), [tmp_path / "mine.txt"], settings, uploaded=True)
    assert {one.source for one in open_shelves("docs", "ann", settings).search("zebra", 5)} == {
        "docs/zebra.txt",
        "mine.txt",
    }
    assert {one.source for one in open_shelves("docs", "bob", settings).search("zebra", 5)} == {"docs/zebra.txt"}


def test_the_nearest_own_passages_are_found_however_many_others_share_the_word(settings, tmp_path):
    folder = tmp_path / "many"
    folder.mkdir()
    for n in range(12):
        (folder / f"{n}.txt").write_text(f"Salt, salt: what is told of salt here is number {n}.")
    add_documents("docs", [folder], settings)
    (tmp_path / "stew.txt").write_text("The stew takes beans, carrots, an onion, and at the very end a little salt.")
    (tmp_path / "lamp.txt").write_text("The lamp takes two batteries.")
    add_documents(own_library("ann"), [tmp_path / "stew.txt", tmp_path / "lamp.txt"], settings, uploaded=True)
    searched, own = open_shelves("docs", "ann", settings), open_library(own_library("ann"), settings)
    assert "stew.txt" not in [one.source for one in WithOwnDocuments(searched, own).search("salt", 5)]
    found = WithOwnDocuments(searched, own, own).search("salt", 5)
    assert [(one.source, one.own) for one in found][1] == ("stew.txt", True)
    assert len(found) == len({one.id for one in found}) == 5
    assert [one.own for one in found] == [False, True, False, False, False]
    assert WithOwnDocuments(searched, own, own).search("stew salt", 5)[0].source == "stew.txt"


def test_nobody_sees_anothers_own_library(settings, tmp_path):
    (tmp_path / "mine.txt").write_text("Secret.")
    add_documents(own_library("ann"), [tmp_path / "mine.txt"], settings)
    assert library_names(settings) == library_names(settings, "bob") == []
    assert library_names(settings, "ann") == [own_library("ann")]
    with pytest.raises(LibraryError, match="no library"):
        open_shelves(own_library("ann"), "bob", settings)


def test_an_open_library_sees_updates(settings, folder):
    add_documents("docs", [folder], settings)
    searched = open_shelves("docs", "ann", settings)
    (folder / "new.txt").write_text("Quinoa is a seed.")
    add_documents("docs", [folder], settings)
    assert [one.text for one in searched.search("quinoa", 1)] == ["Quinoa is a seed."]


def test_a_library_is_removed_and_can_be_made_again(settings, folder):
    add_documents("docs", [folder], settings)
    searched = open_library("docs", settings)
    remove_library("docs", settings)
    assert library_names(settings) == []
    with pytest.raises(LibraryError, match="no library"):
        remove_library("docs", settings)
    with pytest.raises(LibraryError, match="no complete index"):
        searched.search("zebra", 1)
    (folder / "zebra.txt").write_text("Zebras are back.")
    add_documents("docs", [folder], settings)
    assert [one.text for one in searched.search("zebra", 1)] == ["Zebras are back."]


def test_one_writer_at_a_time(settings, folder, monkeypatch):
    monkeypatch.setattr(index, "locked", partial(shelves.locked, patience=0.1))
    add_documents("docs", [folder], settings)
    held = FileLock(settings.libraries_dir / ".docs.lock")
    with held, pytest.raises(LibraryError, match="being updated"):
        add_documents("docs", [folder], settings)
    assert found(settings, "zebra")


def test_writers_at_the_same_time_take_turns(settings, tmp_path):
    for n in range(6):
        (tmp_path / f"{n}.txt").write_text(f"Number{n} is here.")
    threads = [
        threading.Thread(target=add_documents, args=("docs", [tmp_path / f"{n}.txt"], settings)) for n in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(list_documents("docs", settings)) == 6
    assert len(open_library("docs", settings)) == 6


def test_a_corrupt_library_is_refused_with_what_to_do(settings, folder):
    add_documents("docs", [folder], settings)
    newest = max((settings.libraries_dir / "docs").glob("segments_*"))
    newest.write_bytes(b"junk")
    with pytest.raises(LibraryError, match="remove that folder"):
        add_documents("docs", [folder], settings)


def test_a_data_folder_that_is_a_file(tmp_path, folder):
    (tmp_path / "data").write_text("in the way")
    with pytest.raises(LibraryError, match="can't be written"):
        add_documents("docs", [folder], Settings(data_dir=tmp_path / "data"))


def in_another_process(code: str, data_dir: Path, *paths: Path) -> subprocess.CompletedProcess[str]:
    """Run code with `settings` and `paths` at hand."""
    before = (
        "import os, resource, signal, sys\nfrom pathlib import Path\nfrom assistant.settings import Settings\n"
        "from assistant.library.index import add_documents\nfrom assistant.errors import LibraryError\n"
        "settings = Settings(data_dir=Path(sys.argv[1]))\npaths = [Path(one) for one in sys.argv[2:]]\n"
    )
    command = [sys.executable, "-c", before + code, str(data_dir), *map(str, paths)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)


KILLED = """
def kill(done, total):
    if done:
        os.kill(os.getpid(), signal.SIGKILL)
add_documents("docs", paths, settings, kill)
"""


def test_a_killed_build_leaves_nothing_that_looks_whole(settings, tmp_path):
    large = jsonl(tmp_path / "large.jsonl", *((str(n), f"passage number{n}") for n in range(2000)))
    killed = in_another_process(KILLED, settings.data_dir, large)
    assert killed.returncode == -signal.SIGKILL
    assert library_names(settings) == []
    add_documents("docs", [large], settings)
    assert len(open_library("docs", settings)) == 2000


def test_a_killed_update_leaves_the_old_library(settings, folder, tmp_path):
    add_documents("docs", [folder], settings)
    large = jsonl(tmp_path / "large.jsonl", *((str(n), f"passage number{n}") for n in range(2000)))
    assert in_another_process(KILLED, settings.data_dir, large).returncode == -signal.SIGKILL
    assert len(list_documents("docs", settings)) == 3
    assert found(settings, "zebra") == ["The zebra eats grass."]
    add_documents("docs", [large], settings)
    assert len(open_library("docs", settings)) == 2003


FULL = """
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
try:
    add_documents("docs", paths, settings)
except LibraryError as error:
    print(error)
"""


@pytest.mark.skipif(os.name != "posix", reason="limits the size of files as POSIX has it")
def test_a_disk_that_takes_no_more_leaves_the_old_library(settings, folder, tmp_path):
    add_documents("docs", [folder], settings)
    large = jsonl(tmp_path / "large.jsonl", *((str(n), f"passage number{n} " * 30) for n in range(20_000)))
    done = in_another_process(FULL, settings.data_dir, large)
    assert "can't be written" in done.stdout, done.stderr[-2000:]
    assert len(list_documents("docs", settings)) == 3
    assert found(settings, "zebra") == ["The zebra eats grass."]


def test_a_full_disk_is_called_that(tmp_path, monkeypatch):
    def full(*_: object) -> None:
        raise jvm.java_exception()("JVM exception occurred: No space left on device", "java.io.IOException")

    with writing(tmp_path) as writer, monkeypatch.context() as broken:
        broken.setattr(jvm, "call", full)
        with pytest.raises(LibraryError, match="The disk is full"):
            writer.commit({})


def test_what_java_says_is_for_the_log(tmp_path, monkeypatch, caplog):
    def broken(*_: object) -> None:
        raise jvm.java_exception()("JVM exception occurred: Background merge hit exception", "java.io.IOException")

    with writing(tmp_path) as writer, monkeypatch.context() as patched:
        patched.setattr(jvm, "call", broken)
        with pytest.raises(LibraryError) as raised:
            writer.commit({})
    with pytest.raises(LibraryError) as read, reading(tmp_path):
        broken()
    assert not re.search(
        "java|exception|merge", f"{raised.value} {read.value}".replace(str(tmp_path), ""), re.IGNORECASE
    )
    assert "Background merge hit exception" in caplog.text


def test_a_corpus_is_indexed_once_with_its_ids(settings, tmp_path, monkeypatch):
    corpus = jsonl(tmp_path / "c.jsonl", ("d1", "cats " * 300), ("d2", "dogs"))
    seen: list[tuple[int, int]] = []
    searched = corpus_retriever(corpus, settings, lambda done, total: seen.append((done, total)))
    assert [one.id for one in searched.search("cats", 5)] == ["d1"]
    assert seen == [(2, 2)]
    corpus_retriever(corpus, settings, lambda done, total: pytest.fail("indexed again"))
    jsonl(corpus, ("d1", "birds"))
    assert len(corpus_retriever(corpus, settings, silent)) == 1


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [("c.txt", "x", "jsonl"), ("c.jsonl", "{", "line 1"), ("none.jsonl", None, "opened"), ("c.jsonl", "", "no text")],
)
def test_a_corpus_that_cant_be_used_is_named(settings, tmp_path, name, text, reason):
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(LibraryError, match=reason) as caught:
        corpus_retriever(tmp_path / name, settings, silent)
    assert name in str(caught.value)


def run(*arguments: str, data_dir: Path, command: str = "index"):
    from assistant.__main__ import app

    return CliRunner().invoke(app, [command, *arguments, "--data-dir", str(data_dir)], env={"COLUMNS": "200"})


def test_the_command_indexes_lists_and_removes(settings, folder):
    (folder / "bad.jsonl").write_text("{oops")
    done = run(str(folder), data_dir=settings.data_dir)
    assert done.exit_code == 0, done.output
    assert "3 added" in done.output
    assert "line 1" in done.output
    shown = run("--list", data_dir=settings.data_dir).output
    assert "docs/zebra.txt" in shown
    assert "documents" in shown
    assert "1 removed" in run(str(folder / "zebra.txt"), "--remove", data_dir=settings.data_dir).output
    assert "zebra" not in run("--list", data_dir=settings.data_dir).output
    assert "is deleted" in run("--delete", data_dir=settings.data_dir).output
    assert library_names(settings) == []


def test_commands_find_what_was_indexed_without_naming_its_library(settings, folder):
    assert run(str(folder), data_dir=settings.data_dir).exit_code == 0
    assert "docs/zebra.txt" in run("zebra", data_dir=settings.data_dir, command="search").output
    # the document is found, and the task then wants another one beside it
    done = run("docs/zebra.txt", "--task", "compare", data_dir=settings.data_dir, command="digest")
    assert "This takes two documents" in str(done.exception)


def test_the_command_says_when_nothing_could_be_done(settings, folder):
    for arguments in ([str(folder / "none.txt")], [], [""], ["", "--remove"], ["--library", "A b", str(folder)]):
        done = run(*arguments, data_dir=settings.data_dir)
        assert isinstance(done.exception, LibraryError), done.output


def test_the_manifest_lists_the_documents(settings, folder):
    add_documents("docs", [folder], settings)
    documents = read_manifest(settings.libraries_dir / "docs")["documents"]
    assert {one["name"] for one in documents.values()} == {"docs/zebra.txt", "docs/sub/rice.md", "docs/records.jsonl"}
