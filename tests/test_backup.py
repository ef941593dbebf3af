"""`backup` and `restore`: what was told comes back, whatever happens to the file, the disk or the program."""

from __future__ import annotations

import json
import resource
import shutil
import sqlite3
import struct
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import pytest
from filelock import FileLock

from assistant.__main__ import main
from assistant.library.index import add_documents
from assistant.library.shelves import open_library, own_library
from assistant.settings import FILE_VARIABLE, Settings
from assistant.store import database
from assistant.store.conversations import Conversations
from assistant.store.database import connect
from assistant.store.tokens import AccessTokens
from assistant.store.users import Logins
from assistant.types import Turn
from assistant.upkeep import backup as backing
from assistant.upkeep import restore as restoring
from benchmarks.clicks import Stores
from benchmarks.light import light_settings, served
from benchmarks.visitor import Visitor
from ptkb.store import Ptkb

pytestmark = pytest.mark.lucene
ROOT = Path(__file__).parents[1]
PASSWORD = "correct horse"
KEY = "sk-of-a-server"
SAID = "How long do lentils cook?"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with something of everything."""
    folder = tmp_path_factory.mktemp("made")
    settings = Settings(data_dir=folder / "data")
    (folder / "lentils.txt").write_text("Lentils cook in 20 minutes.")
    for library in ("documents", own_library("ada")):
        add_documents(library, [folder / "lentils.txt"], settings, uploaded=library != "documents")
    engine = connect(settings.database_url)
    Ptkb(engine).add("ada", "I'm vegan.")
    conversations = Conversations(engine)
    conversations.save_turn("ada", conversations.new("ada").id, Turn(SAID, status="done"))
    Logins(engine).add("ada", PASSWORD)
    AccessTokens(engine).make("ada", "for cron")
    engine.dispose()
    server = {"address": "http://127.0.0.1:1", "model": "m", "key": KEY, "context": None}
    (settings.data_dir / "models.json").write_text(json.dumps({"servers": [server], "chosen": "m"}))
    for derived in ("models/big", "libraries/starter", "dense/one"):
        (settings.data_dir / derived).mkdir(parents=True)
        (settings.data_dir / derived / "segments_1").write_bytes(b"x" * 1000)
    return settings.data_dir


@pytest.fixture
def data(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "data"))


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Runs a command; gives what it says to a person."""

    def run(*arguments: object, status: int = 0) -> str:
        monkeypatch.setattr(sys, "argv", ["python -m assistant", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        assert ended.value.code == status, said.err
        assert "Traceback" not in said.out + said.err
        return " ".join(said.err.split())

    return run


@pytest.fixture
def archive(made: Path, tmp_path: Path, run: Callable[..., str]) -> Path:
    run("backup", tmp_path / "kept.zip", "--data-dir", made)
    return tmp_path / "kept.zip"


def hashes(folder: Path) -> dict[str, str]:
    """Everything in a folder but lock files, by name; of the database what it says, however it says it."""
    files = (one for one in folder.rglob("*") if one.is_file() and one.suffix not in {".lock", ".sqlite3"})
    kept = {one.relative_to(folder).as_posix(): one.read_bytes() for one in files if "sqlite3-" not in one.name}
    kept["sequitur.sqlite3"] = "\n".join(rows(folder)).encode()
    return {name: sha256(content).hexdigest() for name, content in kept.items()}


def rows(folder: Path) -> list[str]:
    with closing(sqlite3.connect(folder / "sequitur.sqlite3")) as connection:
        return list(connection.iterdump())


def facts(folder: Path, user: str = "ada") -> list[str]:
    engine = connect(f"sqlite:///{folder / 'sequitur.sqlite3'}")
    told = [fact.text for fact in Ptkb(engine).facts(user)]
    engine.dispose()
    return told


def test_what_is_restored_is_what_was_backed_up(made: Path, archive: Path, tmp_path: Path, run) -> None:
    fresh = tmp_path / "fresh"
    said = run("restore", archive, "--data-dir", fresh)
    assert f"{fresh} holds the database; libraries: documents, {own_library('ada')}; the settings file;" in said
    before, after = hashes(made), hashes(fresh)
    kept = {name for name in before if name.startswith(("libraries/documents/", "libraries/user-"))}
    assert kept
    assert set(after) == kept | {"sequitur.sqlite3", "models.json"}
    assert {name: after[name] for name in kept} == {name: before[name] for name in kept}
    assert rows(fresh) == rows(made)
    with ZipFile(archive) as held:
        entries = json.loads(held.read("manifest.json"))["files"]
        database_bytes = held.read("sequitur.sqlite3")
    assert {one["name"]: one["sha256"] for one in entries}["sequitur.sqlite3"] == sha256(database_bytes).hexdigest()
    settings = Settings(data_dir=fresh)
    assert open_library("documents", settings).search("lentils", 1)[0].text == "Lentils cook in 20 minutes."
    assert Logins(connect(settings.database_url)).check("ada", PASSWORD)


def test_a_backup_says_what_it_holds_and_leaves_out(made: Path, tmp_path: Path, run) -> None:
    file = tmp_path / "kept.zip"
    said = run("backup", file, "--data-dir", made)
    size = file.stat().st_size
    assert f"{file} ({size / 1000:.1f} kB) holds the database; libraries: documents, user-" in said
    assert "Left out: models, the starter library, vectors and caches (3.0 kB)" in said
    assert file.stat().st_mode & 0o777 == 0o600
    assert [one.name for one in tmp_path.iterdir()] == ["kept.zip"]


@pytest.mark.parametrize(("options", "held"), [((), ""), (("--keys",), KEY)])
def test_keys_are_left_out_unless_they_are_asked_for(made: Path, tmp_path: Path, run, options, held: str) -> None:
    (settings := tmp_path / "mine.toml").write_text(
        f'# mine\nhub = false\n[llm]\napi_key = "{KEY}"\nthreads = 2\n'
        f'[web]\nmetrics_token = "{KEY}"\n[retrieve.opensearch]\npassword = "{KEY}"\n'
    )
    run("backup", tmp_path / "kept.zip", "--data-dir", made, "--settings", settings, *options)
    with ZipFile(tmp_path / "kept.zip") as archive:
        models, text = json.loads(archive.read("models.json")), archive.read("settings.toml").decode()
    assert models["servers"][0]["key"] == held
    assert (KEY in text) == bool(held)
    assert text.startswith("# mine\nhub = false\n[llm]\n")
    assert "threads = 2\n" in text


def test_every_fact_that_was_acknowledged_before_a_backup_is_in_it(data: Path, tmp_path: Path, run) -> None:
    ptkb, over, told = Ptkb(connect(f"sqlite:///{data / 'sequitur.sqlite3'}")), threading.Event(), []
    enough = threading.Event()

    def tell() -> None:
        while not over.is_set() and len(told) < 900:
            told.append(ptkb.add("bob", f"Number {len(told)} is mine.").text)
            if len(told) % 20 == 0:
                enough.set()

    teller = threading.Thread(target=tell)
    teller.start()
    try:
        for n in range(3):
            assert enough.wait(60)
            before = len(told)
            run("backup", tmp_path / f"{n}.zip", "--data-dir", data)
            enough.clear()
            run("restore", tmp_path / f"{n}.zip", "--data-dir", tmp_path / str(n))
            found = facts(tmp_path / str(n), "bob")
            assert len(found) >= before
            assert found == [f"Number {k} is mine." for k in range(len(found))]
    finally:
        over.set()
        teller.join()


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_an_archive_that_was_cut_short_changes_nothing(archive: Path, data: Path, run, share: float) -> None:
    whole, before = archive.read_bytes(), hashes(data)
    archive.write_bytes(whole[: int(len(whole) * share)])
    said = run("restore", archive, "--data-dir", data, status=2)
    assert f"Error: {archive} is damaged (it was cut short, or is no backup), and nothing was changed" in said
    assert hashes(data) == before


def test_a_changed_byte_is_found_wherever_it_is(archive: Path, data: Path, tmp_path: Path, run) -> None:
    whole, before = archive.read_bytes(), hashes(data)
    with ZipFile(archive) as held:
        infos = [info for info in held.infolist() if info.file_size]
    starts = [one.header_offset + 30 + sum(struct.unpack_from("<HH", whole, one.header_offset + 26)) for one in infos]
    places = [start + info.compress_size // 2 for start, info in zip(starts, infos, strict=True)]
    assert len(places) > 8
    for place in places:
        archive.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        assert "is damaged (" in run("restore", archive, "--data-dir", data, status=2)
        assert hashes(data) == before


def changed(archive: Path, change: Callable[[dict[str, bytes]], None]) -> None:
    """Write an archive anew, as somebody would who knows how."""
    with ZipFile(archive) as held:
        files = {name: held.read(name) for name in held.namelist()}
    change(files)
    with ZipFile(archive, "w", ZIP_DEFLATED) as written:
        for name, content in files.items():
            written.writestr(name, content)


def test_a_file_that_was_exchanged_is_told_by_its_hash(archive: Path, data: Path, run) -> None:
    before = hashes(data)

    def exchange(files: dict[str, bytes]) -> None:
        files["sequitur.sqlite3"] = files["sequitur.sqlite3"].replace(b"vegan", b"eager")

    changed(archive, exchange)
    assert "('sequitur.sqlite3' is not what it was)" in run("restore", archive, "--data-dir", data, status=2)
    assert hashes(data) == before


@pytest.mark.parametrize(
    "name", ["../evil", "/etc/evil", "libraries/../../evil", "libraries/a/../b", "libraries/a/b/c", "C:\\evil", "x.py"]
)
@pytest.mark.parametrize("listed", [False, True])
def test_paths_that_no_backup_has_are_refused(archive: Path, data: Path, run, name: str, listed: bool) -> None:
    before, around = hashes(data), set(data.parent.iterdir())

    def add(files: dict[str, bytes]) -> None:
        manifest = json.loads(files["manifest.json"])
        if listed:
            manifest["files"].append({"name": name, "size": 4, "sha256": sha256(b"evil").hexdigest()})
        files["manifest.json"], files[name] = json.dumps(manifest).encode(), b"evil"

    changed(archive, add)
    assert "which no backup has; don't use it." in run("restore", archive, "--data-dir", data, status=2)
    assert hashes(data) == before
    assert set(data.parent.iterdir()) == around


@pytest.mark.parametrize("version", [{"format": 3}, {"tables": 99}])
def test_an_archive_of_a_newer_version_is_refused(archive: Path, data: Path, run, version: dict[str, int]) -> None:
    before = hashes(data)

    def renew(files: dict[str, bytes]) -> None:
        files["manifest.json"] = json.dumps({**json.loads(files["manifest.json"]), **version}).encode()

    changed(archive, renew)
    said = run("restore", archive, "--data-dir", data, status=2)
    assert said == f"Error: {archive} was written by a newer version of the program; update this one first."
    assert hashes(data) == before


def test_what_is_no_backup_is_refused(data: Path, tmp_path: Path, run) -> None:
    with ZipFile(tmp_path / "other.zip", "w") as other:
        other.writestr("a.txt", "a")
    assert "is no backup of Sequitur; name a file" in run(
        "restore", tmp_path / "other.zip", "--data-dir", data, status=2
    )
    assert "can't be read (No such file" in run("restore", tmp_path / "none.zip", "--data-dir", data, status=2)


def test_a_database_is_replaced_under_a_program_that_has_it_open(archive: Path, data: Path, run) -> None:
    script = (
        "import sys; from assistant.store.database import connect; from ptkb.store import Ptkb;"
        f"ptkb = Ptkb(connect('sqlite:///{data / 'sequitur.sqlite3'}')); ptkb.add('ada', 'It begins.');"
        "print('up', flush=True); sys.stdin.readline(); ptkb.add('ada', 'It goes on.')"
    )
    program = subprocess.Popen(
        [sys.executable, "-c", script], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with program:
        assert program.stdout.readline() == "up\n"
        run("restore", archive, "--data-dir", data)
        program.communicate("\n", timeout=60)
    assert program.returncode == 0
    assert facts(data) == ["I'm vegan.", "It goes on."]
    (aside,) = data.glob("before-restore-*")
    assert facts(aside) == ["I'm vegan.", "It begins."]


def test_a_page_goes_on_while_its_data_folder_is_replaced(tmp_path: Path) -> None:
    settings, file, key = light_settings(tmp_path / "data"), tmp_path / "kept.zip", b"The key hangs behind the door."
    logins = Logins(connect(settings.database_url))
    logins.add("ada", PASSWORD)
    with served(settings, 0.2) as page, ThreadPoolExecutor() as threads:
        ada, bob = Visitor(page.url), Visitor(page.url)
        ada.log_in("ada", PASSWORD)
        ada.send("facts", "store", text="I'm vegan.")
        ada.send("composer", "ask", utterance="How rich in protein are lentils, p0x1?")
        ada.upload("a.txt", key)
        backing.write_backup(settings, file, None)
        logins.add("bob", PASSWORD)
        bob.log_in("bob", PASSWORD)
        ada.send("facts", "store", text="I moved to Oslo.")
        ada.upload("b.txt", b"The lamp stands on the table.")
        stores = Stores(settings, "ada")
        place = {"conversation": stores.turns()["p0x1"][0].conversation}
        answering = threads.submit(ada.send, "composer", "ask", utterance="And in iron, p0x2?", **place)
        while "p0x2" not in stores.turns():
            assert not answering.done()
        (aside,) = restoring.restore_backup(file, settings, tmp_path / "none.toml").kept
        assert "p0x2" in answering.result().text
        ada.send("facts", "store", text="I like oats.")
        ada.upload("c.txt", b"The bed is blue.")
        document = stores.documents()["a.txt"]
        assert ada.client.get(f"/original/{document}").content == key
        assert ada.reload()
        assert not bob.reload()  # whom the backup doesn't know
        ada.close()
        bob.close()
    assert [fact.text for fact in stores.facts()] == ["I'm vegan.", "I like oats."]
    assert stores.documents().keys() == {"a.txt", "c.txt"}
    assert {mark: replies[0].turn.status for mark, replies in stores.turns().items()} == {
        "p0x1": "done",
        "p0x2": "done",
    }
    kept = Stores(light_settings(aside), "ada")
    assert [fact.text for fact in kept.facts()] == ["I'm vegan.", "I moved to Oslo."]
    assert kept.documents().keys() == {"a.txt", "b.txt"}
    assert kept.turns().keys() == {"p0x1", "p0x2"}


def test_where_the_database_cant_be_replaced_all_is_as_it_was(
    archive: Path, data: Path, run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.1)
    before = hashes(data)
    with closing(sqlite3.connect(data / "sequitur.sqlite3", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert "is busy with another program" in run("restore", archive, "--data-dir", data, status=2)
    monkeypatch.setattr(restoring, "file_lock", failing_lock)
    assert "can't be written (Permission denied)" in run("restore", archive, "--data-dir", data, status=2)
    assert hashes(data) == before
    assert not list(data.glob("before-restore-*/*"))


def failing_lock(_: Path) -> FileLock:
    raise PermissionError(13, "Permission denied")


def test_a_library_that_is_being_changed_is_neither_copied_nor_replaced(
    archive: Path, data: Path, tmp_path: Path, run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backing, "LOCK_SECONDS", 0.1)
    monkeypatch.setattr(restoring, "LOCK_SECONDS", 0.1)
    before = hashes(data)
    with FileLock(data / "libraries" / ".documents.lock"):
        assert "is being updated elsewhere" in run("backup", tmp_path / "2.zip", "--data-dir", data, status=2)
        assert "is being updated elsewhere" in run("restore", archive, "--data-dir", data, status=2)
    assert hashes(data) == before
    assert not (tmp_path / "2.zip").exists()


def test_what_was_there_is_kept_aside(archive: Path, data: Path, run) -> None:
    engine = connect(f"sqlite:///{data / 'sequitur.sqlite3'}")
    moves = [f"I moved to Oslo {n} times." for n in range(200)]
    Ptkb(engine).import_text("ada", "\n".join(moves))
    engine.dispose()
    shutil.copytree(data / "libraries" / "documents", data / "libraries" / "later")
    said = run("restore", archive, "--data-dir", data)
    (aside,) = data.glob("before-restore-*")
    assert f"What was there before is in {aside};" in said
    assert facts(data) == ["I'm vegan."]
    assert facts(aside) == ["I'm vegan.", *moves]
    with closing(sqlite3.connect(data / "sequitur.sqlite3")) as connection:  # no page holds what was replaced
        assert connection.execute("PRAGMA freelist_count").fetchone() == (0,)
    assert {one.name for one in (aside / "libraries").iterdir()} == {"documents", "later", own_library("ada")}
    assert not (data / "libraries" / "later").exists()
    assert (data / "libraries" / "starter" / "segments_1").exists()
    assert not list(data.glob(".restore-*"))


def no_database(file: Path) -> None:
    file.write_bytes(b"no database at all" * 1000)


def damaged_within(file: Path) -> None:
    content = file.read_bytes()
    file.write_bytes(content[:8192] + b"\xff" * (len(content) - 8192))


def of_a_newer_version(file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = '99'")


@pytest.mark.parametrize("spoil", [no_database, damaged_within, of_a_newer_version])
def test_a_database_that_cant_be_used_gives_way(archive: Path, data: Path, run, spoil: Callable[[Path], None]) -> None:
    spoil(data / "sequitur.sqlite3")
    spoilt = (data / "sequitur.sqlite3").read_bytes()
    run("restore", archive, "--data-dir", data)
    assert facts(data) == ["I'm vegan."]
    (aside,) = data.glob("before-restore-*")
    assert (aside / "sequitur.sqlite3").read_bytes()[100:] == spoilt[
        100:
    ]  # but for the head, which says how it is open


@pytest.mark.parametrize("good", range(6))
def test_a_move_that_fails_takes_back_those_before_it(
    archive: Path, data: Path, run, monkeypatch: pytest.MonkeyPatch, good: int
) -> None:
    before, moves = hashes(data), iter(range(100))

    def move(source: Path, target: Path, real: Callable[..., object] = shutil.move) -> object:
        if next(moves) == good:
            raise PermissionError(13, "Permission denied")
        return real(source, target)

    monkeypatch.setattr(restoring.shutil, "move", move)
    assert "can't be written (Permission denied)" in run("restore", archive, "--data-dir", data, status=2)
    assert {name: one for name, one in hashes(data).items() if "before-restore" not in name} == before


def limited(*arguments: object, size: int) -> tuple[int, str]:
    """Run a command that can make no file larger than `size` bytes."""
    done = subprocess.run(
        [sys.executable, "-m", "assistant", *map(str, arguments)],
        cwd=ROOT, capture_output=True, text=True, timeout=200, check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)),
    )  # fmt: skip
    return done.returncode, " ".join(done.stderr.split())


@pytest.mark.parametrize("size", [1000, 40_000])
def test_a_full_disk_leaves_no_half_backup(data: Path, tmp_path: Path, size: int) -> None:
    engine = connect(f"sqlite:///{data / 'sequitur.sqlite3'}")
    sentences = "\n".join(sha256(str(n).encode()).hexdigest() * 7 for n in range(900))  # which no ZIP makes smaller
    Ptkb(engine).import_text("bob", sentences)
    engine.dispose()
    before, where = hashes(data), tmp_path / "there"
    where.mkdir()
    status, said = limited("backup", where / "kept.zip", "--data-dir", data, size=size)
    assert (status, list(where.iterdir())) == (2, [])
    assert "disk" in said
    assert said.count("Error:") == 1
    assert hashes(data) == before


def test_a_full_disk_loses_nothing_of_what_would_be_replaced(archive: Path, data: Path) -> None:
    before = hashes(data)
    status, said = limited("restore", archive, "--data-dir", data, size=40_000)
    assert status == 2
    assert said == f"Error: The disk has no room for {data}: free some space or choose another; nothing was changed."
    assert hashes(data) == before


def test_room_is_looked_for_first(archive: Path, data: Path, run, monkeypatch: pytest.MonkeyPatch) -> None:
    before, usage = hashes(data), shutil.disk_usage(data)
    monkeypatch.setattr(restoring.shutil, "disk_usage", lambda _: usage._replace(free=1000))
    said = run("restore", archive, "--data-dir", data, status=2)
    assert f"and {data} has 1.0 kB free: make room, or choose another place" in said
    assert hashes(data) == before


@pytest.mark.parametrize("there", [False, True])
def test_the_settings_file_is_put_back_where_there_is_none(
    made: Path, tmp_path: Path, run, monkeypatch: pytest.MonkeyPatch, there: bool
) -> None:
    fresh, config = tmp_path / "fresh", tmp_path / "config"
    monkeypatch.delenv(FILE_VARIABLE)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(config))
    monkeypatch.setenv("SEQUITUR_DATA_DIR", str(fresh))
    usual = config / "sequitur" / "sequitur.toml"
    (settings := tmp_path / "mine.toml").write_text("[retrieve]\ntop_k = 3\n")
    run("backup", tmp_path / "kept.zip", "--data-dir", made, "--settings", settings)
    if there:
        usual.parent.mkdir(parents=True)
        usual.write_text("[retrieve]\ntop_k = 7\n")
    said = run("restore", tmp_path / "kept.zip")
    place = fresh / "settings-of-backup.toml" if there else usual
    assert f"The settings of the backup are in {place}" in said
    assert place.read_text() == "[retrieve]\ntop_k = 3\n"
    assert not there or usual.read_text() == "[retrieve]\ntop_k = 7\n"


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEQUITUR_DATABASE", "postgresql://ada@127.0.0.1/sequitur")


def test_what_cant_be_backed_up_is_told(data: Path, tmp_path: Path, run) -> None:
    def says(file: Path, folder: Path = data) -> str:
        return run("backup", file, "--data-dir", folder, status=2)

    (there := tmp_path / "there.zip").touch()
    assert "so there is nothing to back up; check --data-dir." in says(tmp_path / "a.zip", tmp_path / "none")
    assert not (tmp_path / "none").exists()
    assert "is there already; choose another name" in says(there)
    assert "can't be written (No such file or directory); choose another place." in says(tmp_path / "no" / "a.zip")
    (data / "sequitur.sqlite3").write_bytes(b"no database at all" * 1000)
    assert "is damaged or not a database" in says(tmp_path / "a.zip")
    assert not (tmp_path / "a.zip").exists()


@pytest.mark.parametrize("text", [b"{", b"[]", b'{"servers": ["x"]}', b"\xff"])
def test_a_damaged_file_of_models_is_named(data: Path, tmp_path: Path, run, text: bytes) -> None:
    (data / "models.json").write_bytes(text)
    (tmp_path / "to").mkdir()
    said = run("backup", tmp_path / "to" / "a.zip", "--data-dir", data, status=2)
    assert "models.json is damaged, so that no backup was written; mend it, or move it away" in said
    assert not list((tmp_path / "to").iterdir())


@pytest.mark.usefixtures("elsewhere")
def test_a_database_of_a_server_has_a_program_of_its_own(data: Path, tmp_path: Path, run) -> None:
    assert "such as pg_dump, and copy the folder" in run("backup", tmp_path / "a.zip", "--data-dir", data, status=2)
