"""All tables of before migrations were written down, as far as a database lacks them.

Until then a version of the program only ever added tables, so that those of any earlier one are these, or some of them.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision, down_revision = "2", None


def upgrade() -> None:
    """Make what is missing."""
    _conversations()
    _turns()
    _people()
    _facts()
    # What programs of before know a database's version by; those of schema 1 knew of no versions of replies.
    _table("schema_version", sa.Column("id", sa.Integer, primary_key=True), sa.Column("version", sa.Integer))


def _conversations() -> None:
    _table(
        "conversations",
        sa.Column("n", sa.Integer, primary_key=True),
        sa.Column("id", sa.String(32), nullable=False, unique=True),
        sa.Column("user", sa.String(200), nullable=False),
        sa.Column("title", sa.String(200), nullable=False),
        sa.Column("created", sa.String(40), nullable=False),
        sa.Column("changed", sa.String(40), nullable=False),
    )
    _index("ix_conversations_user", "conversations", "user")
    _table(
        "preferences",
        sa.Column("user", sa.String(200), primary_key=True),
        sa.Column("choices", sa.Text, nullable=False),
    )


def _turns() -> None:
    _table(
        "turns",
        sa.Column("n", sa.Integer, primary_key=True),
        sa.Column("id", sa.String(32), nullable=False, unique=True),
        _goes_with("conversation", "conversations.id"),
        sa.Column("process", sa.String(32), nullable=False),
        sa.Column("utterance", sa.Text, nullable=False),
        sa.Column("reply", sa.Text, nullable=False),
        sa.Column("words", sa.Text, nullable=False),
        sa.Column("feedback", sa.Integer, nullable=False),
        sa.Column("turn", sa.Text, nullable=False),
    )
    _index("turns_of", "turns", "conversation", "n")
    _table(
        "versions",
        _goes_with("turn", "turns.id", primary_key=True),
        _goes_with("original", "turns.id"),
        sa.Column("shown", sa.Integer, nullable=False),
        sa.Column("side", sa.Integer, nullable=False),
    )
    _index("ix_versions_original", "versions", "original")
    _table(
        "uses",
        _goes_with("turn", "turns.id", primary_key=True),
        sa.Column("fact", sa.String(32), primary_key=True),
    )
    _index("ix_uses_fact", "uses", "fact")


def _people() -> None:
    _table(
        "users",
        sa.Column("name", sa.String(64), primary_key=True),
        sa.Column("hash", sa.String(300), nullable=False),
        sa.Column("created", sa.String(40), nullable=False),
    )
    _table(
        "known_addresses",
        sa.Column("name", sa.String(64), primary_key=True),
        sa.Column("address", sa.String(64), primary_key=True),
        sa.Column("last", sa.String(40), nullable=False),
    )
    _table(
        "tokens",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("user", sa.String(64), nullable=False),
        sa.Column("label", sa.String(100), nullable=False),
        sa.Column("hash", sa.String(64), nullable=False),
        sa.Column("created", sa.String(40), nullable=False),
        sa.Column("used", sa.String(40), nullable=False),
    )
    _index("ix_tokens_user", "tokens", "user")
    _table(
        "usage",
        sa.Column("user", sa.String(64), primary_key=True),
        sa.Column("day", sa.String(10), primary_key=True),
        sa.Column("turns", sa.Integer, nullable=False),
        sa.Column("read", sa.Integer, nullable=False),
        sa.Column("written", sa.Integer, nullable=False),
        sa.Column("seconds", sa.Float, nullable=False),
    )


def _facts() -> None:
    _table(
        "facts",
        sa.Column("n", sa.Integer, primary_key=True),
        sa.Column("id", sa.String(32), nullable=False, unique=True),
        sa.Column("user", sa.String(200), nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("key", sa.String(1000), nullable=False),
        sa.Column("source", sa.String(200), nullable=False),
        sa.Column("on", sa.Boolean, nullable=False),
        sa.Column("created", sa.String(40), nullable=False),
        sa.Column("changed", sa.String(40), nullable=False),
        sa.UniqueConstraint("user", "key"),
    )
    _table(
        "fact_fields",
        _goes_with("fact", "facts.id", primary_key=True),
        sa.Column("field", sa.String(32), nullable=False),
    )


def _table(name: str, *parts: sa.Column[Any] | sa.UniqueConstraint) -> None:
    op.create_table(name, *parts, if_not_exists=True)


def _index(name: str, table: str, *columns: str) -> None:
    op.create_index(name, table, columns, if_not_exists=True)


def _goes_with(name: str, row: str, *, primary_key: bool = False) -> sa.Column[str]:
    reference = sa.ForeignKey(row, ondelete="CASCADE")
    return sa.Column(name, sa.String(32), reference, primary_key=primary_key, nullable=False)
