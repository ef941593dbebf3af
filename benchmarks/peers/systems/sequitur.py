"""Sequitur itself, as a person gets it: the settings as they are, a library of the documents and nothing else."""

from __future__ import annotations

import atexit
import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event

from assistant import turn as flow
from assistant.commands.turn_options import TurnOptions
from assistant.errors import ModelError
from assistant.library.index import add_documents
from assistant.library.shelves import is_library, library_folder, remove_library
from assistant.parts import Loader
from assistant.settings import Settings, load
from assistant.text.markers import extract_markers
from assistant.types import Turn
from assistant.wording.views import unsourced_kind
from benchmarks.peers.wire import Document, Reply, Stand, ids, serve


class Sequitur:
    """The turn that the page runs, without a person's facts and without what was said before."""

    def __init__(self, stand: Stand) -> None:
        self._settings = _settings(stand)
        self._library = f"peers-{os.getpid()}"
        self._loader = Loader(self._settings)
        atexit.register(self.close)
        self._loader.start()
        self._loader.wait()

    def learn(self, documents: Sequence[Document]) -> None:
        """See `System`."""
        self._forget()
        lines = [{"id": document.id, "title": document.title, "contents": document.text} for document in documents]
        with TemporaryDirectory() as folder:
            path = Path(folder, "documents.jsonl")
            path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
            add_documents(self._library, [path], self._settings)

    def ask(self, question: str) -> Reply:
        """See `System`."""
        choices = replace(TurnOptions().choices(self._settings), library=self._library)
        turn = Turn(question, choices=choices)
        with self._loader.lent("peers", choices) as parts:
            *_, turn = flow.run(turn, parts, Event())
        return reply_of(turn)

    def close(self) -> None:
        """Leave nothing behind."""
        self._forget()
        self._loader.close()

    def _forget(self) -> None:
        if is_library(library_folder(self._library, self._settings)):
            remove_library(self._library, self._settings)


def reply_of(turn: Turn) -> Reply:
    """What a turn says at its end, without its markers.

    Raises:
        ModelError: it failed.
    """
    if turn.status == "failed" or turn.answer is None:
        raise ModelError(turn.error or "There is no reply.")
    return Reply(
        extract_markers(turn.answer.text, max_number=len(turn.passages)).text,
        ids([_record(passage.id) for passage in turn.passages]),
        ids([_record(citation.passage_id) for citation in turn.citations]),
        turn.answer.unknown,
        unsourced_kind(turn) == "own",
    )


def _record(passage: str) -> str:
    """The document that a passage is of: what doesn't fit into one goes on in the next, "x" in "x#2"."""
    return passage.partition("#")[0]


def _settings(stand: Stand) -> Settings:
    settings = load()
    server = {"backend": "server", "server": stand.llm, "model": stand.model}
    return settings.model_copy(update={"llm": settings.llm.model_copy(update=server)})


if __name__ == "__main__":
    serve(Sequitur, [])
