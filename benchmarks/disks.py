"""Disks that are full, read-only or gone, a clock that is set, and a file that was tampered with (`bench faults`)."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from html import unescape
from pathlib import Path
from threading import Thread

from assistant.chat import INTERNAL_ERROR
from assistant.errors import SequiturError
from assistant.llm.catalogue import Catalogue, Entry
from assistant.llm.sources import PinnedFile
from assistant.settings import Settings
from benchmarks.clicks import Clicks, Ledger, Stores, find_losses
from benchmarks.light import light_settings, served
from benchmarks.visitor import RefusedError, Visitor

PAUSE = 0.01  # seconds a word of the scripted model
NOBODY = 65534
DISK, ROOM = 16 * 2**20, 2**19  # bytes of a small disk, and those that are left on it
HOUR, DAY = 3600, 86400
JUMPS, CLICKS = (0, HOUR, -DAY, 400 * DAY, -7300 * DAY, HOUR), 8  # seconds that the clock is set to, and clicks at each
GLANCE = 0.05  # seconds between looks at what it is to be set to


@dataclass(frozen=True, slots=True)
class Case:
    """A fault, what came of it, and whether nothing acknowledged was lost and every refusal said what to do."""

    name: str
    outcome: str
    passed: bool


def disks(folder: Path, seed: int) -> Iterator[Case]:
    """All of them, each in a folder of its own."""
    yield full_disk(folder / "full")
    yield clock(folder / "clock", seed)
    yield read_only(folder / "read-only")
    yield read_only_disk(folder / "read-only disk")
    yield failing_disk(folder / "failing")
    yield deleted_folder(folder / "deleted")
    yield tampered_model(folder / "model")


def _limit_file_size(size: int) -> None:
    import resource  # noqa: PLC0415 - Windows has none

    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


@contextmanager
def _small_disk(folder: Path) -> Iterator[bool]:
    """A disk of its own for a folder, of `DISK` bytes; whether there could be one, which takes root and Linux."""
    folder.mkdir(parents=True)
    mount_command = ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(folder)]
    mounted = (
        shutil.which("mount") is not None
        and not subprocess.run(mount_command, check=False, capture_output=True).returncode
    )
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", "--lazy", str(folder)], check=True)  # what looked at it may have it open yet


def full_disk(folder: Path) -> Case:
    """A disk with room for some hundred facts; where none can be had, no file may grow beyond 1 MB (RLIMIT_FSIZE)."""
    with _small_disk(folder) as mounted:
        settings, ledger = light_settings(folder), Ledger()
        limit_file_size = None if mounted else partial(_limit_file_size, 2**20)
        with served(settings, before=limit_file_size) as page:
            visitor = Visitor(page.url)
            if mounted:
                _fill(folder / "filler")
            refusals = [_facts_until_refused(visitor, ledger)]
            refusals += [refusal(act) for act in _acts_on_a_full_disk(visitor, ledger)]
            if mounted:
                (folder / "filler").unlink()
                visitor.send("facts", "store", text="I like room.")
                ledger.facts.add("I like room.")
            visitor.close()
        losses = find_losses(ledger, Stores(settings).snapshot())
    name = f"full disk of {DISK >> 20} MB" if mounted else "full disk (files of 1 MB at most)"
    messages = [
        f"{kind}: {message or 'done'}" for kind, message in zip(("fact", "answer", "document"), refusals, strict=True)
    ]
    messages.append("once there is room a fact is kept" if mounted else "")
    passed = (
        not losses
        and bool(refusals[0])
        and all("disk" in message or "space" in message for message in refusals if message)
    )
    return Case(name, "; ".join((f"{len(ledger.facts)} facts kept", *filter(None, messages), *losses)), passed)


def _fill(file: Path) -> None:
    """Leave little room on a disk."""
    with file.open("wb", buffering=0) as handle, suppress(OSError):
        while True:
            handle.write(bytes(2**14))
    os.truncate(file, file.stat().st_size - ROOM)


def _facts_until_refused(visitor: Visitor, ledger: Ledger) -> str:
    """What was said of the first fact that there was no room for."""
    for n in range(4000):
        text = f"I like {'oats ' * 90}{n}."
        if message := refusal(partial(visitor.send, "facts", "store", text=text)):
            ledger.doubtful.add(text)
            return message
        ledger.facts.add(text)
    return ""


def _acts_on_a_full_disk(visitor: Visitor, ledger: Ledger) -> Iterator[Callable[[], object]]:
    ledger.doubtful |= {"p0x1", "p0x2.txt"}
    yield partial(visitor.send, "composer", "ask", utterance="How rich in protein are lentils, p0x1?")
    yield partial(visitor.upload, "p0x2.txt", b"The key hangs behind the green door. " * 2000)


def refusal(act: Callable[[], object]) -> str:
    """Why a click was refused, "" where it was not."""
    try:
        act()
    except RefusedError as error:
        return unescape(str(error))
    return ""


def clock(folder: Path, seed: int, database: str = "") -> Case:
    """The clock of the served process is set forward and back while it runs, and while it is down.

    `database` is the address of one that holds nothing of the person who clicks, "" for a file.
    """
    folder.mkdir(parents=True)
    offset, settings = folder / "offset", light_settings(folder / "data", database=database)
    stores, ledger, acknowledged_clicks = Stores(settings), Ledger(), Counter[str]()
    refusals = list[str]()
    for jumps in (JUMPS[:3], JUMPS[3:]):
        offset.write_text(str(jumps[0]))
        with served(settings, PAUSE, partial(_clock_by, offset)) as page:
            clicks = Clicks(Visitor(page.url), stores, ledger, random.Random(seed))  # noqa: S311
            for jump in jumps:
                offset.write_text(str(jump))
                time.sleep(4 * GLANCE)
                refusals += filter(None, (refusal(clicks.click) for _ in range(CLICKS)))
            acknowledged_clicks += clicks.acknowledged
            clicks.visitor.close()
    losses = find_losses(ledger, stores.snapshot())
    summary = f"{', '.join(f'{jump:+,} s' for jump in JUMPS)}: {acknowledged_clicks.total()} clicks acknowledged"
    summary += f", {len(losses)} lost"
    refusal_text = f", {len(refusals)} refused: {' | '.join(refusals[:3])}" if refusals else ""
    return Case("clock that is set", summary + refusal_text, not losses and not refusals)


def _clock_by(offset: Path) -> None:
    """From now on this process's clock is off by as many seconds as the file says; what counts time goes on evenly."""
    import time_machine  # noqa: PLC0415 - for tests

    text = offset.read_text()
    traveller = time_machine.travel(time.time() + float(text), tick=True).start()

    def follow(text: str) -> None:
        while True:
            if (new_text := offset.read_text()) and new_text != text:
                traveller.move_to(time_machine.escape_hatch.time.time() + float(new_text))
                text = new_text
            time.sleep(GLANCE)

    Thread(target=follow, args=(text,), daemon=True).start()


def _as_nobody() -> None:
    """Root may write everywhere; only root may give that up."""
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)


def read_only(folder: Path) -> Case:
    """A data folder that may be read and not written, by a server that may not write there."""
    settings = light_settings(folder)
    _tell(settings, "I like oats.")
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    message, passed = start_read_only(settings, _as_nobody)
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    stored_texts = [fact.text for fact in Stores(settings).facts()]
    return Case("read-only data folder", message, passed and stored_texts == ["I like oats."])


def read_only_disk(folder: Path) -> Case:
    """A disk that was mounted anew to be read only (tmpfs) while the server was down."""
    name = "disk mounted read-only"
    with _small_disk(folder) as mounted:
        if not mounted:
            return Case(name, "not tried: only root on Linux can mount a disk", passed=True)
        settings = light_settings(folder)
        _tell(settings, "I like oats.")
        subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
        message, passed = start_read_only(settings)
        subprocess.run(["mount", "-o", "remount,rw", str(folder)], check=True)
        _tell(settings, "I like rice.")
        stored_texts = sorted(fact.text for fact in Stores(settings).facts())
    passed = passed and stored_texts == ["I like oats.", "I like rice."]
    return Case(name, f"{message}; mounted to be written again, it holds {len(stored_texts)} facts of 2", passed)


def _tell(settings: Settings, fact: str) -> None:
    """Start the page, tell it a fact, and end it."""
    with served(settings) as page:
        visitor = Visitor(page.url)
        visitor.send("facts", "store", text=fact)
        visitor.close()


def start_read_only(settings: Settings, before: Callable[[], None] | None = None) -> tuple[str, bool]:
    """What came of a start where nothing can be written, and whether nothing was acknowledged."""
    try:
        with served(settings, before=before) as page:
            visitor = Visitor(page.url)
            message = refusal(partial(visitor.send, "facts", "store", text="I like tea."))
            visitor.close()
            return f"starts; a new fact: {message or 'done'}", bool(message)
    except SequiturError as error:
        return f"does not start: {error}", "It ended" not in str(error)


def failing_disk(folder: Path) -> Case:
    """A disk that the system makes read-only while the page runs, as it does where it finds an error (ext4)."""
    name, image = "disk that turns read-only under a served page", folder.with_suffix(".disk")
    with _ext4(image, folder) as mounted:
        if not mounted:
            return Case(name, "not tried: only root on Linux can mount a disk", passed=True)
        settings, ledger = light_settings(folder), Ledger()
        with served(settings) as page:
            visitor = Visitor(page.url)
            visitor.send("facts", "store", text="I like oats.")
            visitor.upload("a.txt", b"The key hangs behind the green door.")
            subprocess.run(["mount", "-o", "remount,abort", str(folder)], check=True, capture_output=True)
            refusals = refusals_by_kind(visitor)
            visitor.close()
        ledger.facts, ledger.documents = {"I like oats."}, {"a.txt"}
    with _mounted(image, folder) as mounted:  # the system looks through what it noted on the disk
        losses = find_losses(ledger, Stores(settings).snapshot()) if mounted else ["it can't be mounted again"]
    return Case(
        name, "; ".join([*refusal_lines(refusals), *losses]), all(map(is_clear, refusals.values())) and not losses
    )


@contextmanager
def _ext4(image: Path, folder: Path) -> Iterator[bool]:
    """A disk of its own for a folder, in a file; whether there could be one."""
    folder.mkdir(parents=True)
    with image.open("wb") as file:
        file.truncate(4 * DISK)
    formatted = shutil.which("mkfs.ext4") is not None
    formatted = (
        formatted and not subprocess.run(["mkfs.ext4", "-q", str(image)], check=False, capture_output=True).returncode
    )
    if not formatted:
        yield False
        return
    with _mounted(image, folder) as mounted:
        yield mounted


@contextmanager
def _mounted(image: Path, folder: Path) -> Iterator[bool]:
    mount = ["mount", "-o", "loop", str(image), str(folder)]
    mounted = not subprocess.run(mount, check=False, capture_output=True).returncode
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", "--lazy", str(folder)], check=True)


def refusals_by_kind(visitor: Visitor) -> dict[str, str]:
    """What is said to a fact, a question and a document where none of them can be kept; "" where it is done."""
    question = "How rich in protein are lentils, p0x1?"
    return {
        "fact": refusal(partial(visitor.send, "facts", "store", text="I like rice.")),
        "answer": refusal(partial(visitor.send, "composer", "ask", utterance=question)),
        "document": refusal(partial(visitor.upload, "b.txt", b"The lamp stands on the table.")),
    }


def refusal_lines(refusals: Mapping[str, str]) -> list[str]:
    """What `refusals_by_kind` returns, for people."""
    return [f"{kind}: {message or 'done'}" for kind, message in refusals.items()]


def is_clear(message: str) -> bool:
    """Whether a click was refused, and with a sentence that is not the one for bugs."""
    return bool(message) and INTERNAL_ERROR[:20] not in message and not message.startswith(("5", "data:"))


def deleted_folder(folder: Path) -> Case:
    """A data folder that is deleted under a served page: nothing may be acknowledged that is kept nowhere."""
    settings = light_settings(folder)
    with served(settings) as page:
        visitor = Visitor(page.url)
        visitor.send("facts", "store", text="I like oats.")
        visitor.upload("a.txt", b"The key hangs behind the green door.")
        shutil.rmtree(folder)
        refusals = refusals_by_kind(visitor)
        visitor.close()
    lines, done_kinds = refusal_lines(refusals), {kind for kind, message in refusals.items() if not message}
    passed = all(is_clear(message) for kind, message in refusals.items() if kind not in done_kinds)
    try:
        _tell(settings, "I like tea.")
        document_names = list(Stores(settings).documents())
        lines.append(f"started again, it takes facts and has {' and '.join(document_names) or 'no document'}")
        passed = passed and done_kinds <= {"document"} and ("b.txt" in document_names) == ("document" in done_kinds)
    except SequiturError as error:
        lines.append(f"it does not start again: {error}")
        passed = False
    return Case("data folder deleted under a served page", "; ".join(lines), passed)


def tampered_model(folder: Path) -> Case:
    """A model whose file was changed, with its old size and time: it must not be taken for the one that was pinned."""
    from hashlib import sha256  # noqa: PLC0415

    content, settings = b"weights " * 1000, light_settings(folder)
    pinned = PinnedFile(path="m.gguf", size=len(content), sha256=sha256(content).hexdigest())
    catalogue = Catalogue([Entry(name="m", kind="gguf", about="", files=(pinned,))])
    path = catalogue.entry("m").path(settings)
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    catalogue.resolve("m", settings)
    stat = path.stat()
    path.write_bytes(b"W" + content[1:])
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    try:
        catalogue.resolve("m", settings)
    except SequiturError as error:
        return Case("tampered model, old size and time", f"refused: {error}", passed=True)
    return Case("tampered model, old size and time", "taken for the pinned one", passed=False)
