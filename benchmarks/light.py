"""A page that is up in a moment: real stores, documents, turns and HTTP, with a scripted model in place of large ones.

What is measured on it is whether anything is lost, mixed up or let through, not how good the answers are. A reply says
the marks of its question again ("p3x17"), so that another person's would be known.
"""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from assistant.chat import Chat
from assistant.errors import ModelError, SequiturError
from assistant.llm.models import Models
from assistant.parts import LoadingStage
from assistant.protocols import LLM, Parts
from assistant.runs import Runs
from assistant.settings import Backend, LLMSettings, RelevanceSettings, Settings, TurnSettings, WebSettings
from assistant.steps.intent import intent_of
from assistant.store.conversations import Conversations
from assistant.store.database import connect
from assistant.store.shared import Leases
from assistant.store.tokens import AccessTokens
from assistant.store.usage import Usage
from assistant.store.users import Logins
from assistant.types import Choice, Choices, Completion, Messages, Options, Passage, Wait
from assistant.upkeep.accounts import Accounts
from ptkb.extract import offers
from ptkb.fields import fields_of
from ptkb.store import Ptkb

if TYPE_CHECKING:
    from assistant.web.page import House

MARK = re.compile(r"\bp\d+x\d+\b")
PASSAGES = (
    Passage("one", "Lentils", "Lentils are rich in protein. A cup of cooked lentils holds 18 grams of protein."),
    Passage("two", "Lactose", "Lactose is the sugar in milk. Oat drink holds no lactose."),
    Passage("three", "Walking", "Walking for 30 minutes a day is good for the heart."),
)
_DIMENSIONS = 512
STARTS = 300.0  # seconds that a start may take on a computer that has much else to do
# Pages are forked from a process that has made their imports, and has neither Java nor threads of any library.
_FORK = get_context("forkserver")
_FORK.set_forkserver_preload(["benchmarks.ready"])


@dataclass
class Echo:
    """Writes a sentence with the marks of the last message, `pause` seconds a word."""

    pause: float = 0.0
    name: str = "echo"
    context: int = 4096
    can_score: bool = False
    backend: Backend = "llama.cpp"

    def count(self, messages: Messages) -> int:
        """Words."""
        return sum(len(message.content.split()) for message in messages)

    def stream(self, messages: Messages, options: Options, stop: Event) -> Iterator[Completion]:  # noqa: ARG002
        """As the Protocol has it."""
        marks = MARK.findall(messages[-1].content)
        words = f"Lentils are rich in protein, as {marks[-1] if marks else 'everybody'} asked.".split()
        for n in range(1, len(words) + 1):
            if stop.wait(self.pause):
                yield Completion(" ".join(words[: n - 1]), 9, n - 1, finish="cancelled")
                return
            yield Completion(" ".join(words[:n]), 9, n, finish="stop" if n == len(words) else "")

    def complete(self, batch: Sequence[Messages], options: Options, stop: Event) -> list[Completion]:
        """As the Protocol has it."""
        return [list(self.stream(messages, options, stop))[-1] for messages in batch]

    def choose(self, batch: Sequence[Messages], words: tuple[str, ...], stop: Event) -> list[Choice]:  # noqa: ARG002
        """The first word, always."""
        return [Choice({word: float(n == 0) for n, word in enumerate(words)}) for _ in batch]

    def score(self, batch: Sequence[tuple[Messages, str]], stop: Event) -> list[float]:  # noqa: ARG002
        """As the Protocol has it."""
        raise ModelError("The scripted model can't tell how likely a text is.")

    def close(self) -> None:
        """Nothing is loaded."""


class Words:
    """Bags of words as vectors: texts that share words are close."""

    name = "bag of words"

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """As the Protocol has it."""
        rows = np.zeros((len(texts), _DIMENSIONS), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in re.findall(r"\w+", text.lower()):
                row[crc32(word.encode("utf-8", "replace")) % _DIMENSIONS] += 1
        return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9), dtype=np.float32)


class Shelf:
    """The same passages whatever is asked."""

    def search(self, query: str, k: int) -> list[Passage]:  # noqa: ARG002
        """As the Protocol has it."""
        return list(PASSAGES[:k])


class Light:
    """Everything that turns need, there from the start."""

    ready, error, notice, judges = True, "", "", ""

    def __init__(self, settings: Settings, models: Models, embedder: Words) -> None:
        self.settings, self.embedder = settings, embedder
        self._models = models

    def stages(self) -> tuple[LoadingStage, ...]:
        """Nothing is loaded."""
        return ()

    def loaded(self, seconds: float, model: str = "") -> bool:  # noqa: ARG002
        """It is there."""
        return True

    def waiting(self) -> Wait:
        """Nothing is waited for."""
        return Wait("loading")

    def prepare(self, user: str, choices: Choices) -> str:  # noqa: ARG002
        """Nothing needs to be."""
        return ""

    @contextmanager
    def lent(self, user: str, choices: Choices, model: str = "") -> Iterator[Parts]:  # noqa: ARG002
        """The parts, with the model as people share it."""
        with self._models.lent(user, model) as llm:
            yield self._parts(llm)

    def _parts(self, llm: LLM) -> Parts:
        return Parts(self.settings, llm, self.embedder, Shelf())


# the embedder of words knows no meaning, so that only the clearest small talk may count as such
WORDS, TURN = Words(), TurnSettings(intent_threshold=0.85)


def light_settings(folder: Path, slots: int = 4, database: str = "", port: int = 0) -> Settings:
    """Settings for a page in this folder; without an address of a `database` that is a file in there, too."""
    return Settings(
        data_dir=folder,
        database=database,
        hub=False,
        turn=TURN,
        relevance=RelevanceSettings(estimator="none"),
        web=WebSettings(host="127.0.0.1", port=port),
        llm=LLMSettings(slots=slots),
    )


def house(settings: Settings, pause: float) -> tuple[House, Logins]:
    """What the page is built on."""
    from assistant.web.library import OwnDocuments  # noqa: PLC0415 - gradio takes seconds to import
    from assistant.web.metrics import Metrics  # noqa: PLC0415
    from assistant.web.page import House  # noqa: PLC0415
    from assistant.web.server import choosing  # noqa: PLC0415

    engine = connect(settings.database_url)
    conversations, ptkb, logins = Conversations(engine), Ptkb(engine), Logins(engine)
    models = Models(settings)
    models.take_up(models.known.named(), Echo(pause))
    light, metrics, usage = Light(settings, models, WORDS), Metrics(), Usage(engine)
    stores = House(
        settings, Chat(conversations, ptkb, light, (metrics.watch,)), conversations, ptkb,
        OwnDocuments(settings), light,
        Runs(models.line.ahead, Leases(engine), settings.limits.max_answers), AccessTokens(engine),
        Accounts(settings, engine, conversations), models, choosing(settings.web, logins), usage, metrics,
    )  # fmt: skip
    return stores, logins


@dataclass
class Served:
    """A page that is served by a process of its own, which `kill` ends as a crash would."""

    url: str
    pid: int
    process: Any

    def kill(self) -> None:
        """End it at once: nothing of it can do anything about that."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> None:
        """Until it has ended, which what it started does, too."""
        self.process.join()


@contextmanager
def served(settings: Settings, pause: float = 0.0, before: Callable[[], None] | None = None) -> Iterator[Served]:
    """A page in a process of its own; `before` is called in it first, and may take rights away.

    Raises:
        SequiturError: it could not start; the message is what the person at the terminal would read.
    """
    parent_end, child_end = _FORK.Pipe()
    process = _FORK.Process(target=_serve, args=(child_end, settings, pause, before))
    process.start()
    child_end.close()
    try:
        message = (
            parent_end.recv() if parent_end.poll(STARTS) else ModelError(f"It did not start within {STARTS:.0f} s.")
        )
    except EOFError:
        message = ModelError("It ended before it had started.")
    try:
        if isinstance(message, Exception):
            raise message
        page = Served(message, process.pid or 0, process)
        yield page
    finally:
        process.kill()
        process.join()
        parent_end.close()


def ahead(seconds: float) -> None:
    """From now on the clock of this process is so many seconds ahead; what counts time goes on evenly."""
    import time_machine  # noqa: PLC0415 - for tests

    time_machine.travel(time.time() + seconds, tick=True).start()


def learn() -> None:
    """Learn from examples what turns need of them, once for all processes that are forked."""
    intent_of("Hello", WORDS, TURN)
    offers("I'm vegan.", (), WORDS)
    fields_of(["I'm vegan."], WORDS)


def _serve(connection: Connection, settings: Settings, pause: float, before: Callable[[], None] | None) -> None:
    from assistant.web.server import serve  # noqa: PLC0415

    os.setsid()
    try:
        if before:
            before()
        server = serve(*house(settings, pause))
    except SequiturError as error:
        connection.send(error)
        return
    connection.send(server.url)
    with suppress(EOFError):
        connection.recv()  # comes when whoever started this is gone
