# /// script
# requires-python = ">=3.11"
# dependencies = [
#   "haiku.rag==0.6.0",
#   "pydantic-ai<1",
#   "openai<2",
#   "opentelemetry-api==1.36.0",
# ]
# ///
"""haiku.rag: its agent, which searches with a tool as often as it likes, 3 passages a time, cut at 256 tokens.

Later releases than 0.6.0 need Python 3.12; 0.6.0 runs with packages of its time alone, and on a Python whose SQLite
takes extensions. Its reranker wants an Ollama and is left out. Its tokenizer fetches a vocabulary when it starts; where
no network is, TIKTOKEN_CACHE_DIR may name a folder that has it.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from typing import Any

from benchmarks.peers.wire import Document, Reply, Stand, ids, serve


class HaikuRag:
    """A database in memory, made anew for other documents."""

    def __init__(self, stand: Stand) -> None:
        # read when its modules are imported; the agent speaks to an Ollama as to OpenAI, under /v1
        os.environ |= {
            "EMBEDDINGS_PROVIDER": "openai",
            "EMBEDDINGS_MODEL": stand.embedder,
            "EMBEDDINGS_VECTOR_DIM": str(stand.dimensions),
            "OPENAI_API_KEY": "none",
            "OPENAI_BASE_URL": stand.embeddings,
            "RERANK_PROVIDER": "none",
            "QA_PROVIDER": "ollama",
            "QA_MODEL": stand.model,
            "OLLAMA_BASE_URL": stand.llm.removesuffix("/v1"),
        }
        self._runner = asyncio.Runner()
        self._shown: list[str | None] = []

    def learn(self, documents: Sequence[Document]) -> None:
        """See `System`."""
        from haiku.rag.client import HaikuRAG  # noqa: PLC0415 - with the settings above
        from haiku.rag.qa import get_qa_agent  # noqa: PLC0415

        self._client = HaikuRAG(":memory:")
        for one in documents:
            self._runner.run(self._client.create_document(one.whole, uri=one.id))
        self._found, self._client.search = self._client.search, self._search
        self._agent = get_qa_agent(self._client)

    def ask(self, question: str) -> Reply:
        """See `System`."""
        self._shown = []
        answer: str = self._runner.run(self._agent.answer(question))
        return Reply(answer, ids(self._shown))

    async def _search(self, *words: Any, **options: Any) -> Any:
        """What its agent finds, noted."""
        found = await self._found(*words, **options)
        self._shown += [chunk.document_uri for chunk, _ in found]
        return found


if __name__ == "__main__":
    serve(HaikuRag, ["haiku.rag", "pydantic-ai-slim", "docling"])
