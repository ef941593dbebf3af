"""What is said between `bench peers` and a system, a JSON object a line; needs nothing but Python's own library.

To the system `{"documents": [{"id", "title", "text"}, ...]}` and then `{"question": "..."}` as often as is wanted; each
line is answered by one: with the versions of its packages, or with its reply, and with seconds and memory. Documents
take the place of those before. What fails is told as `{"failed": "..."}`, and the next line is read.
"""

from __future__ import annotations

import json
import os
import pathlib
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib.metadata import version
from time import perf_counter
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Stand:
    """What all systems share: addresses of a language model and of an embedder that speak as OpenAI's do (with /v1).

    `tokenizer` is the folder with the embedder's, as transformers reads it.
    """

    llm: str
    model: str
    embeddings: str
    embedder: str
    dimensions: int
    tokenizer: str = ""


@dataclass(frozen=True, slots=True)
class Document:
    """A document of a library."""

    id: str
    title: str
    text: str

    @property
    def whole(self) -> str:
        """The text with its title above it, as a system is given it."""
        return f"{self.title}\n\n{self.text}" if self.title else self.text


@dataclass(frozen=True, slots=True)
class Reply:
    """What a system replied; the ids of the documents that its model was shown, in order, and of those it cites.

    `declined` is whether the system itself counts the reply as none, `own` whether it tells the person that the reply
    is the model's own knowledge and from no document; None where it has no such notion.
    """

    text: str
    shown: tuple[str, ...] = ()
    cited: tuple[str, ...] = ()
    declined: bool | None = None
    own: bool | None = None


class System(Protocol):
    """A program that answers questions from documents."""

    def learn(self, documents: Sequence[Document]) -> None:
        """Take these documents, and no others, as what there is to know."""
        ...

    def ask(self, question: str) -> Reply:
        """Answer from them."""
        ...


def serve(make: Callable[[Stand], System], packages: Sequence[str]) -> None:
    """Be the system that `make` gives, for the stand that the command line tells, until the input ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is not for the asker
    system = make(Stand(**json.loads(sys.argv[1])))
    for line in sys.stdin:
        answers.write(json.dumps(_answer(system, json.loads(line), packages)) + "\n")
        answers.flush()


def _answer(system: System, message: dict[str, Any], packages: Sequence[str]) -> dict[str, Any]:
    start = perf_counter()
    reply: dict[str, Any]
    try:
        if "documents" in message:
            system.learn([Document(**fields) for fields in message["documents"]])
            reply = {"versions": {name: version(name) for name in packages}}
        else:
            reply = asdict(system.ask(message["question"]))
    except Exception as error:  # noqa: BLE001 - whatever another program raises is its result
        reply = {"failed": f"{type(error).__name__}: {error}"}
    return {**reply, "seconds": perf_counter() - start, "peak": _peak()}


def _peak() -> int:
    """The most memory that this process has held, in bytes; 0 where the system doesn't tell.

    What `getrusage` tells is no use here: on Linux a process inherits the peak of the one that started it.
    """
    with suppress(OSError), pathlib.Path("/proc/self/status").open(encoding="ascii") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))
    return 0


def ids(document_ids: Sequence[str | None]) -> tuple[str, ...]:
    """Ids of documents, each once, in their order; several passages may be of one document."""
    return tuple(dict.fromkeys(id_ for id_ in document_ids if id_))
