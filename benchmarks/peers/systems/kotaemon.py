# /// script
# requires-python = ">=3.11,<3.12"
# dependencies = [
#   "kotaemon @ git+https://github.com/Cinnamon/kotaemon.git@4015bb0f7cebd59d474624c4a570a4c119cdd826#subdirectory=libs/kotaemon",
#   "ktem @ git+https://github.com/Cinnamon/kotaemon.git@4015bb0f7cebd59d474624c4a570a4c119cdd826#subdirectory=libs/ktem",
# ]
# ///
"""kotaemon: its file index and "Simple QA" as its page runs them, 10 passages, cut at 1,024 tokens, 256 of them shared.

It searches by words and by meaning. Its USE_LOW_LLM_REQUESTS is set, which it has for models on one's own machine:
otherwise it asks the model once more for every passage, to show a score, and for quotes, which it waits 5 seconds for.
Its reranker is Cohere's, which is left out where no key is. Its tokenizer fetches a vocabulary when it starts; where no
network is, TIKTOKEN_CACHE_DIR may name a folder that has it. It wants packages of its time, which its uv.lock names.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

from theflow.settings import settings

from benchmarks.peers.wire import Document, Reply, Stand, ids, serve

_USER = "default"


class Kotaemon:
    """A file index that is made anew for other documents."""

    def __init__(self, stand: Stand) -> None:
        self._folder = TemporaryDirectory()
        os.environ["USE_LOW_LLM_REQUESTS"] = "true"  # read when its modules are imported
        for name, value in _settings(stand, Path(self._folder.name)).items():
            setattr(settings, name, value)
        self._indexes = 0

    def learn(self, documents: Sequence[Document]) -> None:
        """See `System`.

        Raises:
            ValueError: a document can't be indexed.
        """
        from ktem.index.file import FileIndex  # noqa: PLC0415 - with the settings above

        self._indexes += 1
        self._index = FileIndex(None, self._indexes, "documents", {})
        self._index.on_create()
        self._index.on_start()
        self._index._selector_ui = SimpleNamespace(get_selected_ids=list)  # noqa: SLF001 - its page makes one
        values = {f"index.options.{self._indexes}.{name}": option["value"] for name, option in _options(self._index)}
        self._values = {**values, **_reasoning()}
        paths = [self._write(n, document) for n, document in enumerate(documents)]
        file_ids, errors, _ = _last(self._index.get_indexing_pipeline(self._values, _USER).stream(paths))
        if any(errors):
            raise ValueError(next(filter(None, errors)))
        self._ids = dict(zip(file_ids, (document.id for document in documents), strict=True))

    def ask(self, question: str) -> Reply:
        """See `System`."""
        from ktem.reasoning.simple import FullQAPipeline  # noqa: PLC0415

        retrievers = self._index.get_retriever_pipelines(self._values, _USER, list(self._ids))
        pipeline = FullQAPipeline.get_pipeline(self._values, {}, retrievers)
        shown_ids: list[str] = []
        original_retrieve = pipeline.retrieve

        def retrieve(message: str, history: list[Any]) -> Any:
            passages, info = original_retrieve(message, history)
            shown_ids.extend(self._ids[passage.metadata["file_id"]] for passage in passages)
            return passages, info

        pipeline.retrieve = retrieve
        answer = _last(pipeline.stream(question, "", []))
        return Reply(answer.text, ids(shown_ids))

    def _write(self, n: int, document: Document) -> Path:
        path = Path(self._folder.name, f"{self._indexes}-{n}.txt")
        path.write_text(document.whole, encoding="utf-8")
        return path


def _settings(stand: Stand, folder: Path) -> dict[str, Any]:
    """What its flowsettings.py says, with the stand's models."""
    llm = {"__type__": "kotaemon.llms.ChatOpenAI", "temperature": 0, "base_url": stand.llm, "model": stand.model}
    embedder = {"__type__": "kotaemon.embeddings.OpenAIEmbeddings", "base_url": stand.embeddings}
    embedder |= {"model": stand.embedder}
    shared = {"api_key": "none", "timeout": 600}
    reranker = {"__type__": "kotaemon.rerankings.CohereReranking", "cohere_api_key": ""}
    return {
        "KH_DATABASE": f"sqlite:///{folder / 'sql.db'}",
        "KH_FILESTORAGE_PATH": str(folder / "files"),
        "KH_DOCSTORE": {"__type__": "kotaemon.storages.LanceDBDocumentStore", "path": str(folder / "docstore")},
        "KH_VECTORSTORE": {"__type__": "kotaemon.storages.ChromaVectorStore", "path": str(folder / "vectorstore")},
        "KH_LLMS": {"shared": {"spec": llm | shared, "default": True}},
        "KH_EMBEDDINGS": {"shared": {"spec": embedder | shared, "default": True}},
        "KH_RERANKINGS": {"cohere": {"spec": reranker, "default": True}},
        "KH_REASONINGS_USE_MULTIMODAL": False,
    }  # fmt: skip


def _options(owner: Any) -> Any:
    return owner.get_user_settings().items()


def _reasoning() -> dict[str, Any]:
    from ktem.reasoning.simple import FullQAPipeline  # noqa: PLC0415

    values = {f"reasoning.options.simple.{name}": option["value"] for name, option in _options(FullQAPipeline)}
    return {"reasoning.lang": "en", "reasoning.max_context_length": 32000, **values}


def _last(steps: Any) -> Any:
    """What a generator returns at its end."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


if __name__ == "__main__":
    serve(Kotaemon, ["kotaemon", "ktem"])
