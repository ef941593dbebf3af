"""`bench attacks`: what strangers and other users try, sent to a served page; how much of it was held off.

Each attack is a group of tries. A try is held off where the server refuses it with a sentence, or does only what it
would do for anybody, and goes on answering others meanwhile. The page is `light.py`'s: all but the model is real.
"""

from __future__ import annotations

import math
import os
import random
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import chdir, closing, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from threading import Event, Thread
from typing import Annotated, Any, cast
from urllib.parse import quote, urlsplit

import httpx
import psutil
import typer
from typer.testing import CliRunner

from assistant.chat import INTERNAL_ERROR
from assistant.commands.common import error_console, print_text
from assistant.commands.exit_status import USER_ERROR
from assistant.errors import LibraryError, SequiturError, SettingsError
from assistant.library import apart
from assistant.library.readers import read, suffixes
from assistant.library.reading import SECONDS, SECONDS_PER_MEGABYTE, read_apart
from assistant.runs import MAX_UNWATCHED_SECONDS, SWEEP_SECONDS
from assistant.settings import Settings
from assistant.store.database import connect
from assistant.store.users import Logins
from assistant.types import Answer, Fact, Passage, Sentence, Turn, new_id, now
from assistant.web import render
from benchmarks.bombs import BOMBS, SIMILAR_BOMBS, write_bomb
from benchmarks.clicks import Stores
from benchmarks.figures import Figures
from benchmarks.light import Served, light_settings, served
from benchmarks.mutants import mutant
from benchmarks.visitor import DATA, JOIN, PROGRESS, UNEXPLAINED_FAILURE, UPLOAD, RefusedError, Visitor

PASSWORDS = {"ann": "oats ann tea", "bob": "oats bob tea"}
MEGABYTE = 2**20
# Commands to put made-up words behind. They run in a folder of their own with a broken file (`FORGED`), without the
# library and the model that they are set to, and with a port that is taken, so that none loads a model or serves a
# page. `mcp` would serve over this process's own input and output, and is made to refuse.
FORGED, MISSING = "forged.jsonl", "missing"
COMMANDS: tuple[list[str], ...] = (
    [], ["ask"], ["chat"], ["serve"], ["mcp", "--no-such-option"], ["index"], ["digest"], ["search"], ["backup"],
    ["restore"], ["facts"], ["facts", "add"], ["facts", "edit"], ["facts", "import"], ["facts", "import", FORGED],
    ["facts", "remove"], ["users"], ["users", "add"], ["users", "hash"], ["users", "list"], ["users", "remove"],
    ["users", "token"], ["users", "token", "--revoke"], ["users", "token", "--list"], ["users", "usage"], ["models"],
    ["models", "fetch"], ["models", "list"], ["models", "measure"], ["models", "servers"],
    ["models", "servers", "remove"], ["models", "verify"], ["evaluate"], ["evaluate", "support"],
    ["evaluate", "support", "--pairs", FORGED], ["evaluate", "support", "--pairs", MISSING], ["reproduce"], ["train"],
    ["train", "blend", "--corpus", FORGED, "--questions", FORGED, "--model", MISSING],
    ["train", "pack", "--model", MISSING, "--out", "packed"],
    ["train", "relevance", "--corpus", FORGED, "--questions", FORGED, "--out", "trained"],
    ["train", "relevance", "--corpus", MISSING, "--questions", MISSING, "--out", "trained"],
    ["ikat"], ["ikat", "--topics", FORGED, "--run-name", "ours", "--out", "run"],
    ["ikat", "--topics", MISSING, "--run-name", "ours", "--out", "run"], ["ikat-index", "--passages", "passages"],
    ["ikat-validate"], ["ikat-validate", "--topics", FORGED], ["ikat-validate", "--topics", MISSING],
)  # fmt: skip
TYPED = ("", "short\nshort\n", "one thing\nanother thing\n", "oats rye tea milk\noats rye tea milk\n")
# Seconds of a processor that a small document may take: what its reading may, and the start of that.
SMALL_DOCUMENT_SECONDS = SECONDS + 2.0
PATIENCE = 5.0  # seconds that another person may wait for the page meanwhile, on a computer that does other work, too
ANSWERED = 30.0  # seconds until the other person's question is answered
LOGGED_IN = 5.0  # seconds until a user is logged in while others guess; a password takes 0.2 s of a processor
CONNECTIONS, LOG_INS = 80, 5  # that try made-up names; times that a user logs in meanwhile
PEOPLE, WORD_SECONDS = 10, 0.5  # who ask and leave; seconds for which the model writes a word for them, one at a time
LEFT_MARKS = ("p1x0", "p1x1")  # of what was watched for a moment, and of what nobody ever watched
# Seconds from when the last of them has left until all that they left has stopped: Gradio looks every 10 s whether
# somebody still listens.
LEFT_SECONDS = MAX_UNWATCHED_SECONDS + SWEEP_SECONDS + 10
GROWTH = 0.3  # GB that the server may hold more after an attack
XSS = (
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "<svg onload=alert(1)>", "<iframe src=javascript:1>",
    "<a href='javascript:alert(1)'>x</a>", "[x](javascript:alert(1))", "![x](http://evil.example/x.png)",
    "<style>*{display:none}</style>", "<form action=//evil.example><input name=q></form>", "<base href=//evil.example>",
    "<meta http-equiv=refresh content=0>", "<object data=x>", "<embed src=x>", "<video src=x onerror=alert(1)>",
    "<b onmouseover=alert(1)>x</b>", '" onfocus="alert(1)" autofocus="', "'><script>alert(1)</script>",
    "</textarea><script>alert(1)</script>", "{{constructor.constructor('alert(1)')()}}", "${alert(1)}",
    "<math><mtext><script>alert(1)</script></mtext></math>", "<details open ontoggle=alert(1)>",
    "&lt;script&gt;alert(1)&lt;/script&gt;", "<scr<script>ipt>alert(1)</script>",
    "\x00<script>alert(1)</script>",
    "<link rel=stylesheet href=//evil.example>", "[1](data:text/html,<script>alert(1)</script>)",
    "`<img src=x onerror=alert(1)>`", "```html\n<script>alert(1)</script>\n```", "<template><script>1</script>",
    "<div id=composer>x</div>", "<button data-event=undo>x</button>", "|<b>x|\n|-|\n|<script>1</script>|",
    "<!--><script>alert(1)</script>", "<x contenteditable onblur=alert(1)>", "https://evil.example/?q=secret",
)  # fmt: skip
_ACTIVE = {"script", "img", "iframe", "svg", "style", "form", "base", "meta", "object", "embed", "video", "link", "x"}
_OURS = {"form", "svg"}  # the page's own: forms of facts and pictures on buttons


@dataclass(frozen=True, slots=True)
class Row:
    """One attack: how many tries there were, those that were not held off, and what else was measured."""

    name: str
    tries: int
    through: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class Target:
    """A served page, and clients of it."""

    page: Served
    passwords: Mapping[str, str] = field(default_factory=lambda: PASSWORDS)
    uploads: str = str(Path(gettempdir()) / "gradio")  # only named in forged events

    def client(self, address: str = "127.0.0.1") -> httpx.Client:
        """A stranger at an address of this computer."""
        return httpx.Client(
            base_url=self.page.url, timeout=60, transport=httpx.HTTPTransport(local_address=address, retries=1)
        )

    def visitor(self, name: str) -> Visitor:
        """A user who is logged in."""
        visitor = Visitor(self.page.url)
        visitor.log_in(name, self.passwords[name])
        return visitor

    def memory_gb(self) -> float:
        """GB (10^9 bytes) that the server holds."""
        return float(psutil.Process(self.page.pid).memory_info().rss) / 1e9

    @contextmanager
    def measure_waits(self) -> Iterator[list[float]]:
        """Seconds that another person waited for the page, asked four times a second meanwhile; one at least."""
        waits, stop = list[float](), Event()

        def ask() -> None:
            with self.client("127.0.0.9") as client:
                while not waits or not stop.wait(0.25):
                    start = time.perf_counter()
                    client.get("/gradio_api/app_id")
                    waits.append(time.perf_counter() - start)

        thread = Thread(target=ask)
        thread.start()
        try:
            yield waits
        finally:
            stop.set()
            thread.join()


Attack = Callable[[Target], Row]


def long_names(target: Target) -> Row:
    """Names, passwords and facts of combining marks, which take time with the square of their length."""
    breaches, marks = list[str](), "e" + "\u0316\u0301" * 80_000
    visitor = target.visitor("ann")
    with target.measure_waits() as waits, target.client("127.0.0.2") as stranger:
        for n in (1_000, 3_000, 160_000):
            response = stranger.post("/login", data={"username": marks[:n], "password": "x"})
            breaches += [] if response.status_code in {400, 413, 429} else [f"login of {n}: {response.status_code}"]
        for text in (marks, marks[:20_000], "x" * 900_000):
            with suppress(RefusedError):
                visitor.send("facts", "store", text=text)
                breaches.append(f"fact of {len(text)}")
    visitor.close()
    breaches += delay_breaches("others waited", max(waits), PATIENCE)
    return Row("names, passwords and facts of combining marks", 6, tuple(breaches), f"others waited {max(waits):.1f} s")


def large_bodies(target: Target) -> Row:
    """200 MB as JSON, form and upload: announced and in chunks, of strangers and of a user."""
    user = target.visitor("ann")
    memory_before, breaches, tries = target.memory_gb(), list[str](), 0

    def chunks() -> Iterator[bytes]:
        for _ in range(200):
            yield b"x" * MEGABYTE

    with target.measure_waits() as waits, target.client("127.0.0.2") as stranger:
        for sender, client in (("stranger", stranger), ("user", user.client)):
            for path in ("/login", JOIN, UPLOAD, "/v1/chat/completions", "/gradio_api/run/predict"):
                for headers in ({"Content-Length": str(200 * MEGABYTE)}, {}):
                    tries += 1
                    status = _status(client, path, chunks(), headers)
                    breaches += [f"{sender} {path}: {status}"] if status and not 400 <= status < 500 else []
    user.close()
    memory_growth = target.memory_gb() - memory_before
    breaches += delay_breaches("others waited", max(waits), PATIENCE)
    breaches += [f"memory {memory_growth:+.2f} GB"] if memory_growth > GROWTH else []
    note = f"memory {memory_growth:+.2f} GB; others waited {max(waits):.1f} s"
    return Row("bodies of 200 MB", tries, tuple(breaches), note)


def delay_breaches(label: str, seconds: float, limit: float) -> list[str]:
    """A list with one breach where something took longer than `limit` seconds, else an empty one."""
    return [f"{label} {seconds:.1f} s"] if seconds > limit else []


def _status(client: httpx.Client, path: str, chunks: Iterator[bytes], headers: dict[str, str]) -> int:
    """The status of a request; 0 where the server hung up in the middle of it."""
    try:
        return client.post(path, content=chunks, headers=headers).status_code
    except httpx.TransportError:
        return 0


def bombs(_target: Target) -> Row:
    """Documents that were made to keep a worker busy or fill the memory."""
    breaches, ended_count, kinds = list[str](), 0, [*BOMBS, *SIMILAR_BOMBS]
    cpu_seconds, clock_seconds = dict[str, float](), dict[str, float]()
    with TemporaryDirectory() as folder, _by_processor():
        for name in kinds:
            file = write_bomb(Path(folder), name)
            start, clock_start = _children_seconds(), time.perf_counter()
            try:
                read_apart(file, "d", name, Event())
            except LibraryError as error:
                ended_count += str(error).startswith("it takes too")
            clock_seconds[name] = time.perf_counter() - clock_start
            cpu_seconds[name] = seconds = _children_seconds() - start
            allowed = SMALL_DOCUMENT_SECONDS + SECONDS_PER_MEGABYTE * file.stat().st_size / MEGABYTE
            breaches += [f"{name}: {seconds:.1f} s of {allowed:.1f}"] if seconds > allowed else []
            file.unlink()
    slow_count = sum(seconds > SMALL_DOCUMENT_SECONDS / 2 for seconds in cpu_seconds.values())
    note = f"{_longest(cpu_seconds)}; by the clock {_longest(clock_seconds)}; {slow_count} took more than"
    note += f" {SMALL_DOCUMENT_SECONDS / 2:.0f} s of a processor, {ended_count} were ended by the limits"
    return Row("documents that were made to keep a worker busy", len(kinds), tuple(breaches), note)


def _longest(seconds: Mapping[str, float]) -> str:
    """The two names that took most seconds, with these."""
    slowest, next_slowest = sorted(seconds, key=lambda name: -seconds[name])[:2]
    return f"the longest {seconds[slowest]:.1f} s ({slowest}), then {seconds[next_slowest]:.1f} s ({next_slowest})"


@contextmanager
def _by_processor() -> Iterator[None]:
    """Lift the limit by the clock on reading: on a computer with other work, the clock would measure that work, too."""
    saved_limit, apart.CLOCK_FACTOR = apart.CLOCK_FACTOR, math.inf
    try:
        yield
    finally:
        apart.CLOCK_FACTOR = saved_limit


def _children_seconds() -> float:
    times = os.times()
    return times.children_user + times.children_system


def guesses(target: Target) -> Row:
    """Passwords guessed for a name from one address and from many; the user logs in from where they did before."""
    target.visitor("bob").close()
    statuses = list[int]()
    with target.client("127.0.0.3") as stranger:
        statuses += [
            stranger.post("/login", data={"username": "bob", "password": f"x{n}"}).status_code for n in range(30)
        ]
    with ThreadPoolExecutor(8) as pool:
        statuses += pool.map(lambda n: _guess(target, n), range(60))
    breaches = [str(status) for status in statuses if status == 200]
    try:
        target.visitor("bob").close()
    except RefusedError as error:
        breaches.append(f"the user was kept out: {error}")
    throttled_count = sum(status == 429 for status in statuses)
    return Row(
        "guessed passwords", len(statuses), tuple(breaches), f"{throttled_count} told to wait; the user was let in"
    )


def _guess(target: Target, n: int) -> int:
    with target.client(f"127.0.1.{n + 1}") as client:
        return client.post("/login", data={"username": "bob", "password": f"y{n}"}).status_code


def crowd(target: Target) -> Row:
    """Connections that try made-up names without end, while a user logs in from where they did before."""
    alone = _log_in_seconds(target, "bob")
    statuses, breaches, seconds, stop = list[int](), list[str](), list[float](), Event()

    def knock(n: int) -> None:
        with target.client(f"127.0.2.{n + 1}") as client:
            while not stop.wait(0.1):
                form = {"username": f"nobody{n}x{len(statuses)}", "password": "x"}
                with suppress(httpx.ReadTimeout):  # most of them wait for one another
                    statuses.append(client.post("/login", data=form).status_code)

    with ThreadPoolExecutor(CONNECTIONS) as pool:
        knocking = [pool.submit(knock, n) for n in range(CONNECTIONS)]
        try:
            for _ in range(LOG_INS):
                time.sleep(1)
                seconds.append(_log_in_seconds(target, "bob"))
        except RefusedError as error:
            breaches.append(f"the user was kept out: {error}")
        finally:
            stop.set()
    for knocked in knocking:
        knocked.result()
    breaches += [str(status) for status in statuses if status not in {400, 429}]
    longest = max(seconds, default=0.0)
    breaches += delay_breaches("the user's log-in took", longest, LOGGED_IN)
    told = f"{statuses.count(429)} told to wait; the user was let in {len(seconds)} of {LOG_INS} times"
    return Row(
        f"made-up names by {CONNECTIONS} connections",
        len(statuses),
        tuple(breaches),
        f"{told}, after {longest:.1f} s at most ({alone:.1f} s without them)",
    )


def _log_in_seconds(target: Target, name: str) -> float:
    start = time.perf_counter()
    target.visitor(name).close()
    return time.perf_counter() - start


def forged(target: Target) -> Row:
    """Another user's ids of sessions, events and uploads: read, steered, added to, ended; with a login and without."""
    ann, bob, breaches, tries = target.visitor("ann"), target.visitor("bob"), list[str](), 0
    file = {"files": ("a.txt", b"oats")}
    for n in range(16):
        session, upload = f"anns{n}", {"upload_id": f"annsfile{n}" if n else ""}
        event = ann.join("composer", "stop", session)
        ann.client.post(UPLOAD, params=upload, files=file).raise_for_status()
        requests: tuple[tuple[str, str, dict[str, Any]], ...] = (
            ("GET", DATA, {"params": {"session_hash": session}}),
            ("POST", JOIN, {"json": {"data": [], "fn_index": 0, "session_hash": session}}),
            ("POST", "/gradio_api/cancel", {"json": {"session_hash": session, "fn_index": 0, "event_id": event}}),
            ("POST", "/gradio_api/reset", {"json": {"event_id": event}}),
            ("GET", f"/gradio_api/heartbeat/{session}", {}),
            ("GET", PROGRESS, {"params": upload}),
            ("POST", UPLOAD, {"params": upload, "files": file}),
        )
        with target.client() as stranger:
            for sender, client in (("bob", bob.client), ("stranger", stranger)):
                for method, path, options in requests:
                    tries += 1
                    status = client.request(method, path, **options).status_code
                    breaches += [f"{sender} {path}: {status}"] if status not in {401, 403, 404} else []
    ann.close()
    bob.close()
    return Row("forged ids of sessions, events and uploads", tries, tuple(breaches))


def flood(target: Target) -> Row:
    """Twenty questions of one user at once, while another asks one."""
    ann, bob = target.visitor("ann"), target.visitor("bob")
    ann.number("composer", "ask")
    with ThreadPoolExecutor(20) as pool:
        futures = [pool.submit(_is_answered, ann, n) for n in range(20)]
        time.sleep(0.2)
        reply = bob.send("composer", "ask", utterance="How rich in protein are lentils, p2x1?")
    answered_count = sum(future.result() for future in futures)
    breaches = [] if "p2x1" in reply.text else ["the other was not answered"]
    breaches += delay_breaches("the other's took", reply.seconds, ANSWERED)
    ann.close()
    bob.close()
    note = f"{answered_count} answered; the other's took {reply.seconds:.1f} s"
    return Row("twenty questions at once", 20, tuple(breaches), note)


def _is_answered(visitor: Visitor, n: int) -> bool:
    try:
        visitor.send_of(f"tab{n}", "composer", "ask", utterance=f"How rich in protein are lentils, p1x{n}?")
    except RefusedError:
        return False
    return True


def abandoned(_target: Target) -> Row:
    """People who ask two questions each and leave, at a slow model; once nobody has watched for long, another asks.

    Of each person's questions one was watched for a moment, the other never.
    """
    names = [f"guest{n}" for n in range(PEOPLE)]
    passwords = dict.fromkeys((*names, "late"), "rye lamp tea milk")
    with attacked_page(passwords, WORD_SECONDS, slots=1) as (target, settings):
        for name in names:
            _ask_and_leave(target.visitor(name))
        time.sleep(LEFT_SECONDS)
        late = target.visitor("late")
        try:
            seconds = late.send("composer", "ask", utterance="How rich in protein are lentils, p2x1?").seconds
        finally:
            late.close()
        turns = [Stores(settings, name).turns() for name in names]
    watched, unwatched = (
        Counter(replies[mark][0].turn.status for replies in turns if mark in replies) for mark in LEFT_MARKS
    )
    stopped, done = watched["stopped"] + unwatched["stopped"], watched["done"] + unwatched["done"]
    lost = 2 * PEOPLE - stopped - done
    breaches = [f"{lost} neither stopped nor done, or not kept"] if lost else []
    breaches += [] if unwatched["stopped"] else ["none was stopped of those that nobody ever watched"]
    breaches += delay_breaches("the later question took", seconds, ANSWERED)
    return Row(
        "questions that people ask and leave",
        2 * PEOPLE,
        tuple(breaches),
        f"{stopped} stopped and kept, {unwatched['stopped']} of them never watched, {done} were done before; "
        f"a later question took {seconds:.1f} s",
    )


def _ask_and_leave(visitor: Visitor) -> None:
    """Ask in two tabs, and close one once the page has shown something of the answer, the other without looking."""
    for mark in LEFT_MARKS:
        tab = f"{visitor.session}{mark}"
        visitor.join("composer", "ask", tab, values={"utterance": f"How rich in protein are lentils, {mark}?"})
        if mark == LEFT_MARKS[0]:
            with closing(visitor.stream(tab)) as lines:
                any('"process_generating"' in line for line in lines)
    visitor.close()


def other_sites(target: Target) -> Row:
    """Requests that another site's page sends with a user's cookie, and its preflights."""
    ann, breaches, tries = target.visitor("ann"), list[str](), 0
    paths = ("/login", "/logout", JOIN, UPLOAD, "/v1/chat/completions", "/gradio_api/cancel", "/config", "/model-mark")
    for origin in (
        "http://evil.example",
        "null",
        "http://127.0.0.1:1",
        "https://127.0.0.1",
        "file://",
        "http://[::1]:7860",
    ):
        for path in paths:
            for method in ("POST", "OPTIONS", "GET"):
                tries += 1
                response = ann.client.request(
                    method, path, headers={"Origin": origin, "Access-Control-Request-Method": "POST"}
                )
                if response.status_code not in {400, 403} or "access-control-allow-origin" in response.headers:
                    breaches.append(f"{method} {path} of {origin}: {response.status_code}")
    tries += 1
    breaches += [] if ann.client.get("/logout").status_code == 405 else ["GET /logout"]
    breaches += [] if ann.client.get("/config").status_code == 200 else ["logged out"]
    ann.close()
    return Row("requests of other sites", tries, tuple(breaches))


def junk(target: Target) -> Row:
    """Hosts and origins that are none, and headers that say the page is elsewhere."""
    rng, breaches, tries = random.Random(0), list[str](), 0  # noqa: S311
    letters = "abc.:[]@/\\ %#?\"'<>{}\t\x00\x7f\xe40127-"
    values = ["".join(rng.choices(letters, k=rng.randrange(1, 40))) for _ in range(150)]
    values += ["evil.example", "127.0.0.1.evil.example", "[", "[::1", "localhost:x", "a" * 5000]
    for header in ("Host", "Origin"):
        for value in values:
            tries += 1
            status = _raw(target.page.url, header, value)
            breaches += [f"{header} {value!r}: {status}"] if status not in {"400", "403", "431", ""} else []
    ann = target.visitor("ann")
    for header in ("X-Forwarded-Host", "X-Gradio-Server", "Forwarded", "X-Original-URL", "X-Rewrite-URL"):
        tries += 1
        response = ann.client.get("/", headers={header: "http://evil.example/secret"})
        breaches += [f"{header} is believed"] if "evil.example" in response.text or response.status_code >= 500 else []
    ann.close()
    return Row("malformed hosts and origins", tries, tuple(breaches))


def _raw(url: str, header: str, value: str) -> str:
    """The status that comes back for a request with this header; "" where the server hung up."""
    parts = urlsplit(url)
    host = "" if header == "Host" else f"Host: {parts.netloc}\r\n"
    request = f"GET /gradio_api/app_id HTTP/1.1\r\n{host}{header}: {value}\r\nConnection: close\r\n\r\n"
    with socket.create_connection((parts.hostname, parts.port), timeout=30) as connection:
        connection.sendall(request.encode("latin-1"))
        response = connection.recv(65536).decode("latin-1")
    return response.split(" ")[1] if response.startswith("HTTP/") else ""


def paths(target: Target) -> Row:
    """Files that were not uploaded: of the system, of the network, of others; in events and in addresses."""
    ann, breaches, tries = target.visitor("ann"), list[str](), 0
    names = (
        "/etc/passwd", "../../etc/passwd", f"{target.uploads}/../../etc/passwd", "file:///etc/passwd", "C:\\win.ini",
        "http://169.254.169.254/", "https://evil.example/a.txt", "//evil.example/a", "\\\\evil\\share",
        "/proc/self/environ",
        "~/.ssh/id_rsa", "/dev/zero", "", ".", "a" * 5000, "\x00", f"{target.uploads}/x\x00/../../etc/passwd",
    )  # fmt: skip
    for name in names:
        for piece in ("files", "bring"):
            tries += 1
            file = {"path": name, "url": name, "meta": {"_type": "gradio.FileData"}}
            with suppress(RefusedError):
                ann.send(piece, "upload", [file] if piece == "files" else file)
                breaches.append(f"{piece}: {name[:40]}")
        for template in ("/gradio_api/file={}", "/original/{}", "/js/{}", "/gradio_api/proxy={}"):
            tries += 1
            status = ann.client.get(template.format(quote(name))).status_code
            breaches += [f"{template.format(name[:40])}: {status}"] if status < 400 and name.strip("./") else []
    ann.close()
    return Row("paths and addresses in the place of files", tries, tuple(breaches))


class ActiveContentParser(HTMLParser):
    """Finds what could act among what a person or a model wrote.

    `links` says that a link to elsewhere is meant, as a source's to its page of the web: it has to open apart, without
    telling where it comes from.
    """

    def __init__(self, *, links: bool = False) -> None:
        super().__init__()
        self._links = links
        self.active_elements = list[str]()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """As the parser calls it."""
        joined_values = " ".join(value or "" for _, value in attrs)
        handlers = [name for name, _ in attrs if name.startswith("on")]
        is_source_link = (
            self._links
            and tag == "a"
            and "noreferrer" in joined_values
            and joined_values.startswith(("http://", "https://"))
        )
        urls = [
            value
            for name, value in attrs
            if name in {"href", "src", "action", "formaction", "data"} and not is_source_link
        ]
        if (
            tag in _ACTIVE - _OURS
            or handlers
            or any((value and "evil" in value) or "script:" in str(value) for value in urls)
        ):
            self.active_elements.append(f"<{tag}> {joined_values[:60]}")


def xss(_target: Target) -> Row:
    """Active text as message, reply, draft, fact, title, passage and name of a document, as the page renders them."""
    breaches, tries = list[str](), 0
    for payload in XSS:
        passage = Passage("one", payload, payload, source=payload)
        turn = Turn(
            payload, status="done", draft=payload, passages=(passage,), answer=Answer(payload),
            sentences=(Sentence(payload, state="not"),), model=payload, question=payload,
        )  # fmt: skip
        facts = [Fact(new_id(), payload, now(), now())]
        for html, links in (
            (render.answering(payload, turn, ""), False),
            (render.render("sources", turn=turn, opened=True), True),
            (render.render("facts", facts=facts, relevance={}, told={}, used={}, outdated={}), False),
            (render.notice(payload), False),
            (render.render("composer", draft=payload, nonce="1"), False),
        ):
            tries += 1
            parser = ActiveContentParser(links=links)
            parser.feed(str(html))
            breaches += [f"{payload}: {element}" for element in parser.active_elements]
    return Row("active text on the page", tries, tuple(breaches))


ATTACKS: tuple[Attack, ...] = (
    long_names, large_bodies, bombs, guesses, crowd, forged, flood, abandoned, other_sites, junk, paths, xss,
)  # fmt: skip


# --- fuzzing ------------------------------------------------------------------------------------------------------


def fuzz_readers(count: int, seed: int) -> Row:
    """Bytes that were made up, under the name of each format."""
    from hypothesis import strategies as st  # noqa: PLC0415 - for those who fuzz

    breaches = list[str]()
    kinds, text = sorted(suffixes()), st.text(max_size=300).map(lambda string: string.encode("utf-8", "surrogatepass"))
    seeds = st.sampled_from([b"%PDF-1.4\n", b"PK\x03\x04", b"\x1f\x8b", b'{"id": 1', b"<html><p>", b"1\tx\t", b"# x\n"])
    content = st.tuples(seeds, st.binary(max_size=300) | text).map(b"".join) | st.binary(max_size=300) | text

    with TemporaryDirectory() as folder:

        def check(example: tuple[str, bytes]) -> None:
            file = Path(folder) / f"a{example[0]}"
            file.write_bytes(example[1])
            try:
                read(file)
            except LibraryError:
                pass
            except Exception as error:  # noqa: BLE001 - what is looked for
                breaches.append(f"{example[0]} {example[1][:40]!r}: {error!r}")

        _fuzz(st.tuples(st.sampled_from(kinds), content), check, count, seed)
    return Row("fuzzed documents", count, tuple(breaches))


def fuzz_mutants(count: int, seed: int) -> Row:
    """Small real documents with some of their bytes and members changed: each is read, or refused with a sentence."""
    breaches, outcomes = list[str](), Counter[str]()
    with TemporaryDirectory() as folder:
        for n in range(count):
            suffix, content = mutant(random.Random(f"{seed} {n}"))  # noqa: S311
            file = Path(folder) / f"a{suffix}"
            file.write_bytes(content)
            start = time.process_time()
            try:
                read(file)
                outcomes["were read"] += 1
            except LibraryError as error:
                outcomes["were refused without knowing why" if "the log has" in str(error) else "were refused"] += 1
            except Exception as error:  # noqa: BLE001 - what is looked for
                breaches.append(f"{n}: {suffix}: {error!r}")
            seconds = time.process_time() - start
            breaches += [f"{n}: {suffix}: {seconds:.1f} s"] if seconds > SMALL_DOCUMENT_SECONDS else []
    return Row(
        "changed documents",
        count,
        tuple(breaches),
        ", ".join(f"{number} {outcome}" for outcome, number in outcomes.items()),
    )


def fuzz_events(target: Target, count: int, seed: int) -> Row:
    """Values that were made up, for every event of the page's pieces: none may end as a bug, or without a sentence."""
    from hypothesis import strategies as st  # noqa: PLC0415

    visitor, breaches, sent, refused = target.visitor("ann"), list[str](), 0, 0
    visitor.number("composer", "ask")
    names = sorted(name for name in visitor.events if name[0] != "None")
    value = st.none() | st.booleans() | st.integers() | st.text(max_size=40) | st.lists(st.integers(), max_size=3)
    keys = ("conversation", "turn", "text", "fact", "place", "value", "kind", "on", "document", "utterance", "model",
            "title", "search", "strategy", "first", "second", "passage", "cite", "page", "name", "token")  # fmt: skip
    values = st.dictionaries(st.sampled_from(keys), value, min_size=1, max_size=5)

    def check(example: tuple[tuple[str, str], dict[str, Any]]) -> None:
        nonlocal sent, refused
        sent += 1
        try:
            visitor.send(*example[0], *list(example[1].values())[: visitor.inputs[example[0]]], **example[1])
        except RefusedError as error:
            refused += 1
            if str(error).startswith(("5", UNEXPLAINED_FAILURE)) or INTERNAL_ERROR[:20] in str(error):
                breaches.append(f"{example}: {error}")
        except httpx.HTTPError as error:
            breaches.append(f"{example}: {error!r}")

    _fuzz(st.tuples(st.sampled_from(names), values), check, count, seed)
    visitor.close()
    return Row("fuzzed events of the page", sent, tuple(breaches), f"{len(names)} kinds; {refused} were refused")


def fuzz_commands(count: int, seed: int) -> Row:
    """Words that were made up, behind commands: each ends with a sentence, or does as told."""
    from hypothesis import strategies as st  # noqa: PLC0415

    from assistant.__main__ import app  # noqa: PLC0415 - the program that this is a part of

    breaches, runner = list[str](), CliRunner()
    # none that leads out of the folder
    words = st.text(st.characters(exclude_characters="\0/~"), max_size=12).filter(lambda word: word != "..")
    options = st.sampled_from(["--data-dir", "--settings", "--user", "--json", "--yes", "-", "--", "--help"])

    with _fuzzed_folder() as environment:

        def check(example: tuple[list[str], list[str], str]) -> None:
            command, arguments, typed = example
            command_line = [*command, *arguments]
            result = runner.invoke(app, command_line, env=environment, input=typed)
            if isinstance(result.exception, SequiturError):  # told as a sentence, with exit code 2, by `main`
                is_told = bool(str(result.exception))
            else:
                is_told = result.exit_code == 0 or (result.exit_code == USER_ERROR and bool(result.output.strip()))
            if not is_told:
                breaches.append(f"{command_line}: {result.exit_code}, {result.exception!r}")

        examples = st.tuples(st.sampled_from(COMMANDS), st.lists(words | options, max_size=4), st.sampled_from(TYPED))
        _fuzz(examples, check, count, seed)
    return Row("fuzzed command lines", count, tuple(breaches), f"behind {len(COMMANDS)} commands")


@contextmanager
def _fuzzed_folder() -> Iterator[dict[str, str]]:
    """A folder to be in with a broken file, and an environment in which no command loads a model or serves a page."""
    # a made-up word may name a folder
    with TemporaryDirectory() as folder, chdir(folder), socket.create_server(("127.0.0.1", 0)) as taken:
        Path(FORGED).write_text('{"id": 1\n', encoding="utf-8")
        yield {
            "SEQUITUR_DATA_DIR": folder,
            "SEQUITUR_HUB": "false",
            "SEQUITUR_LIBRARY": MISSING,
            "SEQUITUR_LLM__MODEL": str(Path(folder) / MISSING),
            "SEQUITUR_WEB__PORT": str(taken.getsockname()[1]),
        }


FUZZERS: tuple[Callable[[int, int], Row], ...] = (fuzz_readers, fuzz_mutants, fuzz_commands)


def _fuzz(strategy: Any, check: Callable[[Any], None], count: int, seed: int) -> None:
    """Call `check` with so many values of a hypothesis strategy."""
    import hypothesis  # noqa: PLC0415

    quiet: Any = hypothesis.settings(
        max_examples=count,
        deadline=None,
        database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
        phases=[hypothesis.Phase.generate],
    )
    given, seeded = cast("Any", hypothesis.given(strategy)), cast("Any", hypothesis.seed(seed))
    seeded(quiet(given(check)))()


# --- the command --------------------------------------------------------------------------------------------------


@contextmanager
def attacked_page(
    passwords: Mapping[str, str] = PASSWORDS, word_seconds: float = 0.02, slots: int = 4
) -> Iterator[tuple[Target, Settings]]:
    """A page with these users, whose model takes so long for a word, so many answers side by side; and its settings."""
    with TemporaryDirectory() as folder:
        settings = light_settings(Path(folder), slots)
        engine = connect(settings.database_url)
        for name, password in passwords.items():
            Logins(engine).add(name, password)
        engine.dispose()
        with served(settings, pause=word_seconds) as page:
            yield Target(page, passwords), settings


def run(count: int, seed: int, only: Iterable[str] = ()) -> list[Row]:
    """The attacks and kinds of made-up inputs of these names, or all; of the inputs so many of each kind.

    Raises:
        SettingsError: nothing is called so.
    """
    names = [check.__name__ for check in (*ATTACKS, fuzz_events, *FUZZERS)]
    chosen, rows = set(only) or set(names), list[Row]()
    if unknown := sorted(chosen.difference(names)):
        raise SettingsError(f"There is no attack '{unknown[0]}'; there are: {', '.join(names)}.")
    with attacked_page() as (target, _):
        rows += [_print_row(attack(target)) for attack in ATTACKS if attack.__name__ in chosen]
        if count and fuzz_events.__name__ in chosen:
            rows.append(_print_row(fuzz_events(target, count, seed)))
    if count:
        rows += [_print_row(fuzz(count, seed)) for fuzz in FUZZERS if fuzz.__name__ in chosen]
    return rows


def attacks(
    count: Annotated[int, typer.Option("--fuzz", min=0, help="Made-up inputs of each of four kinds.")] = 10_000,
    seed: Annotated[int, typer.Option(help="Decides the made-up inputs.")] = 0,
    only: Annotated[
        list[str] | None,
        typer.Option(help="One attack, or kind of made-up inputs; may be repeated.", show_default="all"),
    ] = None,
    *,
    figures: Figures,
) -> None:
    """Attack a served page: long names, large bodies, bombs, guesses, forged ids, floods, other sites, active text."""
    rows = run(count, seed, only or ())
    summary = {row.name: {"tries": row.tries, "not held off": len(row.through), "note": row.note} for row in rows}
    figures.tell("attacks", {"seed": seed, "rows": [asdict(row) for row in rows]}, {"attack": summary})


def _print_row(row: Row) -> Row:
    error_console.print(
        f"{row.name}: {row.tries} tries, {len(row.through)} not held off; {row.note}", style="dim", markup=False
    )
    for breach in row.through[:10]:
        print_text(f"  {breach}", error_console)
    return row
