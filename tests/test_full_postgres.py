"""A PostgreSQL whose disk is full, a real one: what was acknowledged is kept, what isn't is told, and it goes on."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp

import pytest

from assistant.errors import StoreError
from assistant.store.conversations import Conversations
from assistant.store.database import connect
from assistant.store.users import DEFAULT_USER
from assistant.types import Answer, Turn
from benchmarks.clicks import Stores
from benchmarks.light import light_settings, served
from benchmarks.visitor import RefusedError, Visitor
from ptkb.store import Ptkb
from tests.fixtures_postgres import Server

DISK, ROOM = 24 * 2**20, 2**17  # bytes of the disk, and those that are left on it when it is filled
SAID = "is on a full disk; free some space and try again, nothing was lost"
MOST = 4000  # facts that a disk of that room never holds


@dataclass(frozen=True)
class Disk:
    """A small one, with a database of PostgreSQL on it; the server's log of changes is elsewhere."""

    folder: Path
    url: str

    def fill(self) -> None:
        """Leave little room."""
        with self._filler.open("wb", buffering=0) as file:
            file.write(bytes(shutil.disk_usage(self.folder).free - ROOM))

    def free(self) -> None:
        """Give the room back."""
        self._filler.unlink()

    @property
    def _filler(self) -> Path:
        return self.folder / "filler"


@pytest.fixture
def disk(postgres: Server, postgres_template: str) -> Iterator[Disk]:
    folder = Path(mkdtemp(prefix="small-disk-"))
    made = ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(folder)]
    if shutil.which("mount") is None or subprocess.run(made, check=False, capture_output=True).returncode:
        folder.rmdir()
        pytest.skip("a disk of its own takes Linux, and the right to mount one")
    try:
        folder.chmod(0o755)
        space = folder / "space"
        space.mkdir()
        shutil.chown(space, postgres.as_user.get("user"), postgres.as_user.get("group"))
        postgres.admin(f"CREATE TABLESPACE small LOCATION '{space}'")
        postgres.admin(f"CREATE DATABASE small TEMPLATE {postgres_template} TABLESPACE small STRATEGY FILE_COPY")
        yield Disk(folder, postgres.url("small"))
        postgres.admin("DROP DATABASE small WITH (FORCE)")
        postgres.admin("DROP TABLESPACE small")
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
        folder.rmdir()


def until_refused(act: Callable[[int], object]) -> tuple[int, str]:
    """How often it was done, and why not any more."""
    for n in range(MOST):
        try:
            act(n)
        except (StoreError, RefusedError) as error:
            return n, str(error)
    raise AssertionError("the disk did not fill")


def fact(n: int) -> str:
    return f"I like {'oats ' * 90}{n}."


def test_stores_keep_what_they_took_and_go_on_once_there_is_room(disk: Disk) -> None:
    engine = connect(disk.url)
    ptkb, conversations = Ptkb(engine), Conversations(engine)
    conversation = conversations.new("ann").id
    disk.fill()
    taken, said = until_refused(lambda n: ptkb.add("ann", fact(n)))
    assert taken
    assert said.endswith(f"{SAID}.")
    turns, said = until_refused(lambda n: conversations.save_turn("ann", conversation, whole(n)))
    assert said.endswith(f"{SAID}.")
    assert {one.text for one in ptkb.facts("ann")} == {fact(n) for n in range(taken)}
    assert [one.utterance for one in conversations.get("ann", conversation).turns] == [
        whole(n).utterance for n in range(turns)
    ]
    disk.free()
    ptkb.add("ann", fact(taken))
    conversations.save_turn("ann", conversation, whole(turns))
    assert len(ptkb.facts("ann")) == taken + 1
    engine.dispose()


def test_a_full_disk_that_refuses_connections_is_told_as_one(disk: Disk) -> None:
    for kept in disk.folder.rglob("pg_internal.init"):  # which the server then writes at the next connection
        kept.unlink()
    disk.fill()
    with pytest.raises(StoreError, match=SAID):
        connect(disk.url)
    disk.free()
    connect(disk.url).dispose()


def whole(n: int) -> Turn:
    """A turn that takes some room; what repeats itself would be kept in little."""
    return Turn(f"Why {n}?", answer=Answer(" ".join(str(k * k * (n + 7)) for k in range(2000))), status="done")


def test_a_page_tells_it_and_goes_on_once_there_is_room(disk: Disk, tmp_path: Path) -> None:
    settings = light_settings(tmp_path, database=disk.url)
    with served(settings) as page:
        visitor = Visitor(page.url)
        visitor.send("facts", "store", text="I like room.")
        engine = connect(disk.url)
        disk.fill()
        until_refused(lambda n: Ptkb(engine).add("bob", fact(n)))
        engine.dispose()
        taken, said = until_refused(lambda n: visitor.send("facts", "store", text=fact(n)))
        assert said.endswith(f"{SAID}.")
        asked, said = until_refused(
            lambda n: visitor.send("composer", "ask", utterance=f"How rich are lentils, p{n}x1?")
        )
        assert said.endswith(f"{SAID}.")
        disk.free()
        visitor.send("composer", "ask", utterance="How rich is rice, p0x2?")
        visitor.send("facts", "store", text="I like rice.")
        visitor.close()
    seen = Stores(settings, DEFAULT_USER).snapshot()
    assert seen.facts == {"I like room.", *map(fact, range(taken)), "I like rice."}
    done = {mark for mark, replies in seen.turns.items() if replies[0].turn.status == "done"}
    assert {f"p{n}x1" for n in range(asked)} | {"p0x2"} <= done
