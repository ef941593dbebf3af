"""BM25 and dense retrieval in OpenSearch, by opensearch-py.

Words are searched as Anserini does it here: the same chain of Lucene's filters, k1 and b of the settings, and term
statistics that all indexes searched together share (`dfs_query_then_fetch`). Meaning is approximate nearest neighbours
(HNSW; Malkov and Yashunin, TPAMI 2020) among vectors of length 1; a passage in several pieces counts by its best.

An index there belongs to one library, and its mapping's `_meta` says what it holds (`mark`) and how it is made
(`shape`). A document is what `bm25.passage_json` writes of a passage, and the hash of that. Not run against a real
OpenSearch: the tests' stand-in answers as its documentation says.
"""

from __future__ import annotations

import json
import re
import ssl
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import islice
from typing import TYPE_CHECKING, Any

from assistant.errors import LibraryError, disk_errors_as
from assistant.protocols import Embedder, Progress
from assistant.retrieve.bm25 import passage_json, passage_of, searchable
from assistant.retrieve.encoder_pieces import encoded_queries, texts_of
from assistant.settings import OpenSearchSettings, RetrieveSettings
from assistant.types import Passage

if TYPE_CHECKING:
    from opensearchpy import OpenSearch

# No query of so many characters has more terms than OpenSearch takes by default (1,024).
QUERY_CHARS = 1000
BATCH = 64  # passages that are encoded at once
CHUNK_BYTES = 8 * 2**20  # of one request; OpenSearch takes 100 MB by default
RETRIES = 5  # of documents that a busy cluster puts off
# What reading an answer raises that is JSON, but no OpenSearch's.
MALFORMED_ANSWER_ERRORS = (AttributeError, KeyError, TypeError)
# Lucene's EnglishAnalyzer, as Anserini uses it.
ANALYSIS = {
    "filter": {
        "possessive": {"type": "stemmer", "language": "possessive_english"},
        "stop_words": {"type": "stop", "stopwords": "_english_"},
    },
    "analyzer": {
        "words": {
            "type": "custom",
            "tokenizer": "standard",
            "filter": ["possessive", "lowercase", "stop_words", "porter_stem"],
        }
    },
}
_STORED = {"id": {"type": "keyword", "ignore_above": 8191}, "hash": {"type": "keyword"}} | {
    name: {"type": "keyword", "index": False, "doc_values": False} for name in ("title", "heading", "source")
}
_PAGE = {"page": {"type": "integer", "index": False}}


class Cluster:
    """An OpenSearch. Safe to use from several threads."""

    def __init__(self, settings: RetrieveSettings) -> None:
        """Nothing is asked yet.

        Raises:
            LibraryError: its client is not installed, or the file with the certificate can't be read.
        """
        self.settings, self.knobs = settings, settings.opensearch
        self.client = _client(self.knobs)

    def index(self, library: str, encoder: Embedder | None = None) -> Index:
        """The index of a library: its vectors by this encoder, or its words."""
        name = f"{self.knobs.prefix}.{library}"
        if encoder is None:
            return Index(self, name, _words(self.settings))
        slug = re.sub(r"[^a-z0-9]+", "-", encoder.name.lower()).strip("-")[-60:]
        return Index(self, f"{name}.{slug}", _vectors(encoder), encoder)

    def marks(self, indexes: Sequence[Index]) -> dict[str, str]:
        """What each of these indexes holds, by name; those that are not there, or made otherwise, are left out.

        Raises:
            LibraryError: OpenSearch can't be asked.
        """
        with self.translated_errors(MALFORMED_ANSWER_ERRORS):
            mappings = self.client.indices.get_mapping(
                index=",".join(index.name for index in indexes), params={"ignore_unavailable": "true"}
            )
            metas = {index.name: mappings.get(index.name, {}).get("mappings", {}).get("_meta", {}) for index in indexes}
        return {
            index.name: metas[index.name]["mark"]
            for index in indexes
            if metas[index.name].get("shape") == index.shape and "mark" in metas[index.name]
        }

    def search(self, indexes: Sequence[Index], body: Mapping[str, Any], **options: str) -> list[dict[str, Any]]:
        """The hits of a search in these indexes, best first; equals in the order of their ids.

        Raises:
            LibraryError: OpenSearch can't be asked, or one of the indexes is gone.
        """
        request = {**body, "_source": {"excludes": ["hash", "pieces"]}, "sort": [{"_score": "desc"}, {"id": "asc"}]}
        with self.translated_errors(MALFORMED_ANSWER_ERRORS):
            response = self.client.search(index=",".join(index.name for index in indexes), body=request, params=options)
            failed_shards, hits = response["_shards"]["failed"], list[dict[str, Any]](response["hits"]["hits"])
        if failed_shards:
            raise LibraryError(
                f"Parts of the library can't be searched: shards of the OpenSearch at {self.knobs.address} failed; "
                "see its log, and ask again."
            )
        return hits

    def forget(self, library: str) -> None:
        """Delete all that is there of a library, where there is anything.

        Raises:
            LibraryError: OpenSearch can't be asked, or doesn't let this user delete.
        """
        names = f"{self.knobs.prefix}.{library},{self.knobs.prefix}.{library}.*"
        with self.translated_errors():
            mappings = self.client.indices.get_mapping(
                index=names, params={"ignore_unavailable": "true", "allow_no_indices": "true"}
            )
            # one by one: clusters may be set to refuse deletions by pattern
            for name in mappings:
                self.client.indices.delete(index=name, params={"ignore_unavailable": "true"})

    @contextmanager
    def translated_errors(self, answer_errors: tuple[type[Exception], ...] = ()) -> Iterator[None]:
        """Turn what the client raises, and the `answer_errors`, which an unexpected answer causes, into a sentence."""
        from opensearchpy.exceptions import OpenSearchException  # noqa: PLC0415 - only where there is a cluster

        kinds: tuple[type[Exception], ...] = (OpenSearchException, *answer_errors)
        try:
            yield
        except kinds as error:
            raise LibraryError(_sentence(error, self.knobs)) from error


@dataclass(frozen=True)
class Index:
    """One index: of a library's words, or of its vectors by an encoder. `definition` is what it is made with."""

    cluster: Cluster
    name: str
    definition: Mapping[str, Any]
    encoder: Embedder | None = None
    shape: str = field(init=False)

    def __post_init__(self) -> None:
        """Name how it is made."""
        shape = sha256(json.dumps(self.definition, sort_keys=True).encode()).hexdigest()[:16]
        object.__setattr__(self, "shape", shape)

    def synchronise(self, passages: Iterable[Passage], total: int, mark: str, progress: Progress) -> None:
        """Make it hold these passages and no others. What is there already, from before an interruption too, stays.

        Args:
            passages: all that it is to hold.
            total: how many these are.
            mark: what is to name them; `Cluster.marks` tells it once all are there.
            progress: told passages.

        Raises:
            LibraryError: OpenSearch can't be asked, or refused some of them.
        """
        from opensearchpy.helpers import streaming_bulk  # noqa: PLC0415

        client = self.cluster.client
        with self.cluster.translated_errors():
            self._ensure()
            actions = self._actions(passages, self._stored_hashes(), total, progress)
            results = streaming_bulk(
                client,
                actions,
                max_chunk_bytes=CHUNK_BYTES,
                max_retries=RETRIES,
                initial_backoff=1,
                raise_on_error=False,
            )
            for succeeded, item in results:
                [(action, result)] = item.items()
                if not succeeded and not (action == "delete" and result.get("status") == 404):
                    raise LibraryError(_refusal(result, self.cluster.knobs))
            client.indices.refresh(index=self.name)
            client.indices.put_mapping(index=self.name, body={"_meta": {"shape": self.shape, "mark": mark}})

    def _ensure(self) -> None:
        """See that it is there, made as it has to be; one that is made otherwise is replaced."""
        indices = self.cluster.client.indices
        existing = indices.get_mapping(index=self.name, params={"ignore_unavailable": "true"})
        if existing and existing[self.name]["mappings"].get("_meta", {}).get("shape") == self.shape:
            return
        if existing:
            indices.delete(index=self.name, params={"ignore_unavailable": "true"})
        mappings = {**self.definition["mappings"], "_meta": {"shape": self.shape}}
        indices.create(index=self.name, body={**self.definition, "mappings": mappings})

    def _stored_hashes(self) -> dict[str, str]:
        """The hash of each document that is there, by its key."""
        from opensearchpy.helpers import scan  # noqa: PLC0415

        client = self.cluster.client
        client.indices.refresh(index=self.name)
        hits = scan(client, index=self.name, query={"query": {"match_all": {}}, "_source": ["hash"]})
        return {hit["_id"]: hit["_source"]["hash"] for hit in hits}

    def _actions(
        self, passages: Iterable[Passage], stored_hashes: dict[str, str], total: int, progress: Progress
    ) -> Iterator[dict[str, Any]]:
        """What to send: new and changed passages, and then the ends of those that are no more."""
        done, remaining = 0, iter(passages)
        while batch := list(islice(remaining, BATCH)):
            changed = [
                document for document in map(_document, batch) if stored_hashes.pop(document.key, "") != document.hash
            ]
            for document, pieces in zip(changed, self._vector_fields(changed), strict=True):
                source = {**document.record, "hash": document.hash, **pieces}
                yield {"_op_type": "index", "_index": self.name, "_id": document.key, "_source": source}
            done += len(batch)
            progress(min(done, total), total)
        for key in stored_hashes:
            yield {"_op_type": "delete", "_index": self.name, "_id": key}

    def _vector_fields(self, documents: Sequence[_Document]) -> list[dict[str, Any]]:
        """What each document has besides its passage: its vectors, where there is an encoder."""
        if self.encoder is None:
            return [{} for _ in documents]
        texts = [texts_of(document.passage, self.encoder) for document in documents]
        vectors = iter(self.encoder.encode([text for pieces in texts for text in pieces]).tolist())
        return [{"pieces": [{"vector": next(vectors)} for _ in pieces]} for pieces in texts]


class WordRetriever:
    """A `Retriever` by words over indexes that are searched as one."""

    def __init__(self, cluster: Cluster, indexes: Sequence[Index]) -> None:
        self._cluster, self._indexes = cluster, indexes

    def search(self, query: str, k: int) -> list[Passage]:
        """At most `k` passages, best first.

        Raises:
            LibraryError: OpenSearch can't be asked.
        """
        text = searchable(query[:QUERY_CHARS])
        if not text or k <= 0:
            return []
        body = {"size": k, "query": {"match": {"contents": {"query": text}}}}
        hits = self._cluster.search(self._indexes, body, search_type="dfs_query_then_fetch")
        return [passage_of(hit["_source"], hit["_score"]) for hit in hits]


class VectorRetriever:
    """A `Retriever` by meaning; the score of a passage is the cosine of its best piece."""

    def __init__(self, cluster: Cluster, indexes: Sequence[Index], encoder: Embedder) -> None:
        self._cluster, self._indexes, self._encoder = cluster, indexes, encoder

    def search(self, query: str, k: int) -> list[Passage]:
        """At most `k` passages, best first.

        Raises:
            LibraryError: OpenSearch can't be asked.
        """
        text = searchable(query)
        if not text or k <= 0:
            return []
        nearest = {"pieces.vector": {"vector": encoded_queries(self._encoder, [text])[0].tolist(), "k": k}}
        body = {"size": k, "query": {"nested": {"path": "pieces", "score_mode": "max", "query": {"knn": nearest}}}}
        # OpenSearch tells (1 + cosine) / 2
        return [passage_of(hit["_source"], 2 * hit["_score"] - 1) for hit in self._cluster.search(self._indexes, body)]


@dataclass(frozen=True)
class _Document:
    key: str
    passage: Passage
    record: Mapping[str, Any]
    hash: str


def _document(passage: Passage) -> _Document:
    """A passage as it is stored; its id may be longer than OpenSearch lets one be, so that its hash is the key."""
    text = passage_json(passage)
    return _Document(_hash(passage.id), passage, json.loads(text), _hash(text))


def _hash(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _words(settings: RetrieveSettings) -> dict[str, Any]:
    """An index of words."""
    similarity = {"default": {"type": "BM25", "k1": settings.k1, "b": settings.b}}
    properties = {**_STORED, **_PAGE, "contents": {"type": "text", "analyzer": "words"}}
    return {
        "settings": {"index": {"similarity": similarity}, "analysis": ANALYSIS},
        "mappings": {"dynamic": "strict", "properties": properties},
    }


def _vectors(encoder: Embedder) -> dict[str, Any]:
    """An index of this encoder's vectors."""
    method = {"name": "hnsw", "engine": "lucene", "space_type": "cosinesimil"}
    vector = {"type": "knn_vector", "dimension": encoder.encode(["?"]).shape[1], "method": method}
    pieces = {"type": "nested", "properties": {"vector": vector}}
    contents = {"type": "text", "index": False}
    return {
        "settings": {"index": {"knn": True}},
        "mappings": {"dynamic": "strict", "properties": {**_STORED, **_PAGE, "contents": contents, "pieces": pieces}},
    }


def _client(knobs: OpenSearchSettings) -> OpenSearch:
    try:
        from opensearchpy import OpenSearch  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise LibraryError(
            "The client of OpenSearch is not installed: pip install -r requirements-opensearch.txt (or "
            "sequitur[opensearch]), or leave retrieve.opensearch.address empty."
        ) from error
    login = (knobs.user, knobs.password.get_secret_value()) if knobs.user else None
    with disk_errors_as(LibraryError, f"The certificate in {knobs.ca} can't be read", "correct retrieve.opensearch.ca"):
        ssl.create_default_context(cafile=knobs.ca or None)  # the client would read it with the first request
    return OpenSearch(
        hosts=[knobs.address], http_auth=login, verify_certs=True, ca_certs=knobs.ca or None,
        timeout=knobs.seconds, max_retries=1,
    )  # fmt: skip


def _sentence(error: Exception, knobs: OpenSearchSettings) -> str:
    """What the client raised, for a person."""
    from opensearchpy import exceptions as kinds  # noqa: PLC0415

    server = f"the OpenSearch at {knobs.address}"
    sentences: tuple[tuple[type[Exception], str], ...] = (
        (
            kinds.SSLError,
            f"The certificate of {server} is not trusted; name the file of its authority in retrieve.opensearch.ca.",
        ),
        (
            kinds.ConnectionTimeout,
            f"There was no answer from {server} in {knobs.seconds:g} s; see how busy it is, ask again.",
        ),
        (
            kinds.ConnectionError,
            f"No OpenSearch answers at {knobs.address}; start it, or correct the setting.",
        ),
        (
            kinds.AuthenticationException,
            f"User or password is not right for {server}; correct retrieve.opensearch.user and .password.",
        ),
        (
            kinds.AuthorizationException,
            f"What is asked of {server} is refused ({_kind(error)}): its user needs the right to read, write, make and "
            f"delete indexes named {knobs.prefix}.*, and its disk some room.",
        ),
        (
            kinds.NotFoundError,
            f"An index of the library is gone from {server}; ask again, and it is brought there anew.",
        ),
        (kinds.ConflictError, f"Another program changed the library in {server} meanwhile; ask again."),
    )
    for kind, sentence in sentences:
        if isinstance(error, kind):
            return sentence
    if getattr(error, "status_code", 0) == 429:
        return f"There is too much to do for {server}; ask again in a moment."
    return f"What is asked was not understood by {server} ({_kind(error)}); see whether it is OpenSearch 2.13 or later."


def _refusal(result: Mapping[str, Any], knobs: OpenSearchSettings) -> str:
    """Why a document was refused, for a person."""
    kind = (result.get("error") or {}).get("type", "no reason")
    if result.get("status") == 409:
        return f"Another program changed the library in the OpenSearch at {knobs.address} meanwhile; ask again."
    return (
        f"The OpenSearch at {knobs.address} refused a passage ({kind}); its log has the details. What arrived is kept."
    )


def _kind(error: Exception) -> str:
    """The short name that OpenSearch has for an error; its words may quote what people wrote."""
    kind = str(getattr(error, "error", ""))
    return kind if re.fullmatch(r"[a-z_]{3,60}", kind) else f"status {getattr(error, 'status_code', 'unknown')}"
