# /// script
# requires-python = ">=3.12"
# dependencies = [
#   "haiku.rag-slim==0.101.1",
#   "docling-core[chunking]==2.104.0",
#   "transformers==5.24.0",
# ]
# ///
"""haiku.rag: its agent, which searches, runs code and cites with tools, 5 passages a search, cut at 256 tokens.

Passages are cut by the embedder's own tokenizer, since the usual one comes from the network. There is no reranker, as
it comes; documents are given as Docling's, so that Docling's readers of files aren't needed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from docling_core.types.doc.document import DoclingDocument
from docling_core.types.doc.labels import DocItemLabel
from haiku.rag.client import HaikuRAG
from haiku.rag.config.models import (
    AppConfig,
    EmbeddingModelConfig,
    EmbeddingsConfig,
    ModelConfig,
    ProcessingConfig,
    QAConfig,
)

from benchmarks.peers.wire import Document, Reply, Stand, ids, serve


class HaikuRag:
    """A database that is made anew for other documents."""

    def __init__(self, stand: Stand) -> None:
        embedder = EmbeddingModelConfig(
            provider="openai",
            name=stand.embedder,
            vector_dim=stand.dimensions,
            base_url=stand.embeddings,
            api_key="none",
        )
        # the temperature is its own; what its usual model thinks and sees, this one doesn't
        model = ModelConfig(provider="openai", name=stand.model, base_url=stand.llm, api_key="none", temperature=0.3)
        self._config = AppConfig(
            qa=QAConfig(model=model),
            embeddings=EmbeddingsConfig(model=embedder),
            processing=ProcessingConfig(chunking_tokenizer=stand.tokenizer),
        )
        self._runner = asyncio.Runner()
        self._folder = TemporaryDirectory()
        self._client: HaikuRAG | None = None
        self._shown_ids: list[str | None] = []

    def learn(self, documents: Sequence[Document]) -> None:
        """See `System`."""
        self._runner.run(self._learn(documents))

    def ask(self, question: str) -> Reply:
        """See `System`."""
        assert self._client  # noqa: S101 - it has learned
        self._shown_ids = []
        answer, citations = self._runner.run(self._client.ask(question))
        return Reply(answer, ids(self._shown_ids), ids([citation.document_uri for citation in citations]))

    async def _learn(self, documents: Sequence[Document]) -> None:
        if self._client:
            await self._client.__aexit__(None, None, None)
            self._folder = TemporaryDirectory()
        client = HaikuRAG(Path(self._folder.name, "documents.lancedb"), self._config, create=True)
        self._client = await client.__aenter__()
        for document in documents:
            docling_document = _docling(document)
            await client.import_document(
                docling_document, await client.chunk(docling_document), document.id, document.title or None
            )
        self._original_search, client.search = client.search, self._search

    async def _search(self, *arguments: Any, **options: Any) -> Any:
        """What its agent finds, noted."""
        results = await self._original_search(*arguments, **options)
        self._shown_ids += [result.document_uri for result in results]
        return results


def _docling(document: Document) -> DoclingDocument:
    docling_document = DoclingDocument(name=document.id)
    if document.title:
        docling_document.add_title(document.title)
    for paragraph in filter(str.strip, document.text.split("\n\n")):
        docling_document.add_text(DocItemLabel.TEXT, paragraph)
    return docling_document


if __name__ == "__main__":
    serve(HaikuRag, ["haiku.rag-slim", "pydantic-ai-slim", "lancedb", "docling-core"])
