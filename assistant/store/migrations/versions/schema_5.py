"""Tables that some databases of schema 3 and 4 lack.

Those tables were added to steps 2 and 3 after a program had brought databases to schema 3 without them.
"""

import sqlalchemy as sa
from alembic import op

revision, down_revision = "5", "4"


def upgrade() -> None:
    """Make what is missing."""
    op.create_table(
        "usage",
        sa.Column("user", sa.String(64), primary_key=True),
        sa.Column("day", sa.String(10), primary_key=True),
        sa.Column("turns", sa.Integer, nullable=False),
        sa.Column("read", sa.Integer, nullable=False),
        sa.Column("written", sa.Integer, nullable=False),
        sa.Column("seconds", sa.Float, nullable=False),
        if_not_exists=True,
    )
    op.create_table(
        "answering",
        sa.Column("user", sa.String(200), primary_key=True),
        sa.Column("conversation", sa.String(32), primary_key=True),
        sa.Column("process", sa.String(32), nullable=False),
        sa.Column("place", sa.String(255), nullable=False),
        sa.Column("seen", sa.Float, nullable=False),
        sa.Column("stop", sa.Boolean, nullable=False),
        if_not_exists=True,
    )
    op.create_index("ix_answering_conversation", "answering", ["conversation"], if_not_exists=True)
    op.create_table(
        "wrong_passwords",
        sa.Column("key", sa.String(64), primary_key=True),
        sa.Column("count", sa.Integer, nullable=False),
        sa.Column("until", sa.Float, nullable=False),
        if_not_exists=True,
    )
    op.create_index("ix_wrong_passwords_until", "wrong_passwords", ["until"], if_not_exists=True)
