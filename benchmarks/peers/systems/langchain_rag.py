# /// script
# requires-python = ">=3.11"
# dependencies = [
#   "langchain-classic==1.0.8",
#   "langchain-core==1.8.3",
#   "langchain-openai==1.7.4",
#   "langchain-text-splitters==1.1.3",
#   "numpy==2.4.6",
# ]
# ///
"""LangChain: RetrievalQA with its own prompt over the vector store in memory.

It has no size of passages of its own: 1,000 characters, 200 of them shared, are what tutorials commonly take. The
store's own number of passages is 4.
"""

from __future__ import annotations

from collections.abc import Sequence

from langchain_classic.chains import RetrievalQA
from langchain_core.documents import Document as Passage
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from langchain_text_splitters import RecursiveCharacterTextSplitter

from benchmarks.peers.wire import Document, Reply, Stand, ids, serve


class LangChain:
    """A chain that is made anew for other documents."""

    def __init__(self, stand: Stand) -> None:
        self._llm = ChatOpenAI(base_url=stand.llm, api_key="none", model=stand.model, temperature=0)
        self._embeddings = OpenAIEmbeddings(
            base_url=stand.embeddings, api_key="none", model=stand.embedder, check_embedding_ctx_length=False
        )

    def learn(self, documents: Sequence[Document]) -> None:
        """See `System`."""
        splitter = RecursiveCharacterTextSplitter(chunk_size=1000, chunk_overlap=200)
        passages = splitter.split_documents(
            [Passage(document.whole, metadata={"id": document.id}) for document in documents]
        )
        store = InMemoryVectorStore.from_documents(passages, self._embeddings)
        self._chain = RetrievalQA.from_chain_type(
            self._llm, retriever=store.as_retriever(), return_source_documents=True
        )

    def ask(self, question: str) -> Reply:
        """See `System`."""
        output = self._chain.invoke({"query": question})
        return Reply(output["result"], ids([passage.metadata["id"] for passage in output["source_documents"]]))


if __name__ == "__main__":
    serve(LangChain, ["langchain-classic", "langchain-core", "langchain-openai", "langchain-text-splitters"])
