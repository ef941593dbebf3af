# /// script
# requires-python = ">=3.11"
# dependencies = [
#   "llama-index-core==0.14.25",
#   "llama-index-llms-openai-like==0.8.1",
#   "llama-index-embeddings-openai-like==0.4.0",
# ]
# ///
"""LlamaIndex: its vector index and query engine as they come, cut at 1,024 tokens, with 2 passages."""

from __future__ import annotations

from collections.abc import Sequence

from llama_index.core import Document as Node
from llama_index.core import VectorStoreIndex
from llama_index.embeddings.openai_like import OpenAILikeEmbedding
from llama_index.llms.openai_like import OpenAILike

from benchmarks.peers.wire import Document, Reply, Stand, ids, serve


class LlamaIndex:
    """An index that is made anew for other documents."""

    def __init__(self, stand: Stand) -> None:
        self._llm = OpenAILike(
            model=stand.model, api_base=stand.llm, api_key="none", is_chat_model=True, context_window=4096
        )
        self._embedder = OpenAILikeEmbedding(model_name=stand.embedder, api_base=stand.embeddings, api_key="none")

    def learn(self, documents: Sequence[Document]) -> None:
        """See `System`."""
        nodes = [Node(text=document.whole, doc_id=document.id) for document in documents]
        self._engine = VectorStoreIndex.from_documents(nodes, embed_model=self._embedder).as_query_engine(self._llm)

    def ask(self, question: str) -> Reply:
        """See `System`."""
        response = self._engine.query(question)
        return Reply(str(response), ids([source_node.node.ref_doc_id for source_node in response.source_nodes]))


if __name__ == "__main__":
    serve(LlamaIndex, ["llama-index-core", "llama-index-llms-openai-like", "llama-index-embeddings-openai-like"])
