"""Dense retrieval in PostgreSQL: the vectors of libraries in one table, ranked there by the inner product.

By the extension pgvector (https://github.com/pgvector/pgvector). Every search compares the query with all vectors of
its library, so that it finds what the files of `assistant.retrieve.dense` find up to `MAX_EXACT_VECTORS` vectors; a
row is read only under the name of its library, and users' own libraries have names of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from pgvector.sqlalchemy import Vector
from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Engine,
    Float,
    MetaData,
    String,
    Table,
    Text,
    delete,
    func,
    insert,
    inspect,
    select,
    text,
)

from assistant.protocols import Embedder, Progress
from assistant.retrieve.dense import Lookup, rows_of
from assistant.retrieve.encoded import BATCH, key_of
from assistant.retrieve.encoder_pieces import encoded_queries
from assistant.types import Passage

TABLES = MetaData()
_VECTORS = Table(
    "passage_vectors",
    TABLES,
    Column("library", String(64), primary_key=True),
    Column("encoder", String(200), primary_key=True),
    Column("passage", Text, primary_key=True),
    Column("key", String(64), primary_key=True),  # of the text: a long passage has several
    Column("vector", Vector, nullable=False),
)
# What the vectors of a library were made of, once all of them are there.
_BUILDS = Table(
    "vector_builds",
    TABLES,
    Column("library", String(64), primary_key=True),
    Column("encoder", String(200), primary_key=True),
    Column("state", Text, nullable=False),
)


def prepare(engine: Engine) -> bool:
    """Make the tables where they are missing. Returns False where the server has no pgvector, or refuses it.

    Raises:
        SequiturError: the database can't be reached or written.
    """
    with engine.begin() as connection:
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _number("prepare")})
        if connection.scalar(text("SELECT 1 FROM pg_extension WHERE extname = 'vector'")) is None:
            offered = text("SELECT 1 FROM pg_available_extensions WHERE name = 'vector'")
            allowed = text("SELECT has_database_privilege(current_database(), 'CREATE')")
            if not (connection.scalar(offered) and connection.scalar(allowed)):
                return False
            connection.execute(text("CREATE EXTENSION vector"))
        TABLES.create_all(connection)
    return True


def remove(engine: Engine, library: str) -> None:
    """Delete all vectors of a library."""
    if inspect(engine).has_table(_VECTORS.name):
        with engine.begin() as connection:
            for table in (_VECTORS, _BUILDS):
                connection.execute(delete(table).where(table.c.library == library))


class PostgresDense:
    """A `Retriever` over the vectors of one library by one encoder; `prepare` was called before."""

    def __init__(self, engine: Engine, library: str, embedder: Embedder, passages: Lookup) -> None:
        """`passages` finds passages by their ids."""
        self._engine, self._library, self._embedder, self._passages = engine, library, embedder, passages

    @property
    def state(self) -> str | None:
        """The `state` that `build` was last given; None where it never ended."""
        with self._engine.connect() as connection:
            state: str | None = connection.scalar(select(_BUILDS.c.state).where(self._of_this_index(_BUILDS)))
            return state

    def build(self, passages: Iterable[Passage], progress: Progress, state: str) -> None:
        """Make or update the vectors; only texts that the library had none of are encoded, and each is kept at once.

        Args:
            passages: all that the library is to hold.
            progress: told texts to encode.
            state: names what is indexed.

        Raises:
            SequiturError: the database can't be reached or written.
        """
        with self._build_lock():
            rows, texts = rows_of(enumerate(passages), set(self._stored_keys()), self._embedder)
            self._encode(texts, progress)
            passage_keys = list(dict.fromkeys(zip(rows.ids, rows.keys, strict=True)))
            with self._engine.begin() as connection:
                self._arrange(connection, passage_keys)
                connection.execute(delete(_BUILDS).where(self._of_this_index(_BUILDS)))
                connection.execute(insert(_BUILDS).values(**self._key_columns, state=state))

    def search(self, query: str, k: int) -> list[Passage]:
        """At most `k` passages, best first; the score is the inner product. A passage that is gone is left out."""
        if k <= 0 or not query.strip():
            return []
        vector = encoded_queries(self._embedder, [query])[0]
        score = func.max(-_VECTORS.c.vector.max_inner_product(vector), type_=Float).label("score")
        ranking = select(_VECTORS.c.passage, score).where(self._of_this_index(_VECTORS), _VECTORS.c.passage != "")
        with self._engine.connect() as connection:
            rows = connection.execute(ranking.group_by(_VECTORS.c.passage).order_by(score.desc()).limit(k)).all()
        passages = self._passages([row.passage for row in rows])
        return [
            replace(passage, score=float(row.score)) for passage, row in zip(passages, rows, strict=True) if passage
        ]

    @property
    def _key_columns(self) -> dict[str, str]:
        return {"library": self._library, "encoder": self._embedder.name}

    def _of_this_index(self, table: Table) -> ColumnElement[bool]:
        return (table.c.library == self._library) & (table.c.encoder == self._embedder.name)

    def _stored_keys(self) -> Sequence[str]:
        """The keys of the texts that have a vector."""
        with self._engine.connect() as connection:
            return connection.scalars(select(_VECTORS.c.key).where(self._of_this_index(_VECTORS)).distinct()).all()

    def _encode(self, texts: dict[str, str], progress: Progress) -> None:
        """Store the vectors of new texts under no passage yet: what is broken off is gone on with from there."""
        stored_keys = set(self._stored_keys())
        missing = [key for key in texts if key not in stored_keys]
        for start in range(0, len(missing), BATCH):
            batch = missing[start : start + BATCH]
            vectors = self._embedder.encode([texts[key] for key in batch])
            rows = [
                {**self._key_columns, "passage": "", "key": key, "vector": vector}
                for key, vector in zip(batch, vectors, strict=True)
            ]
            with self._engine.begin() as connection:
                connection.execute(insert(_VECTORS), rows)
            progress(start + len(batch), len(missing))

    def _arrange(self, connection: Connection, passage_keys: Sequence[tuple[str, str]]) -> None:
        """Let each passage have its rows, and no others be there."""
        connection.execute(
            text("CREATE TEMP TABLE wanted (passage text, key varchar(64), PRIMARY KEY (passage, key)) ON COMMIT DROP")
        )
        if passage_keys:
            rows = [{"passage": passage, "key": key} for passage, key in passage_keys]
            connection.execute(text("INSERT INTO wanted VALUES (:passage, :key)"), rows)
        connection.execute(
            text(
                "INSERT INTO passage_vectors SELECT :library, :encoder, w.passage, w.key, v.vector FROM wanted w JOIN "
                "(SELECT DISTINCT ON (key) key, vector FROM passage_vectors WHERE library = :library "
                "AND encoder = :encoder) v ON v.key = w.key ON CONFLICT DO NOTHING"
            ),
            self._key_columns,
        )
        connection.execute(
            text(
                "DELETE FROM passage_vectors v WHERE library = :library AND encoder = :encoder AND NOT EXISTS "
                "(SELECT FROM wanted w WHERE w.passage = v.passage AND w.key = v.key)"
            ),
            self._key_columns,
        )

    @contextmanager
    def _build_lock(self) -> Iterator[None]:
        """No other process builds the same meanwhile; it is waited for."""
        lock = {"lock": _number(f"{self._library} {self._embedder.name}")}
        with self._engine.connect() as connection:
            connection.execute(text("SELECT pg_advisory_lock(:lock)"), lock)
            connection.commit()
            try:
                yield
            finally:
                connection.execute(text("SELECT pg_advisory_unlock(:lock)"), lock)


def _number(name: str) -> int:
    """The number of the advisory lock of this name: 60 bits of a hash."""
    return int(key_of(f"vectors {name}")[:15], 16)
