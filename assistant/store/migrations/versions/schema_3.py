"""Tables by which several processes know of each other. Programs of before leave such a database alone."""

import sqlalchemy as sa
from alembic import op

revision, down_revision = "3", "2"


def upgrade() -> None:
    """Make the tables, and say where programs of before look for it that the database is newer than they are."""
    op.create_table(
        "answering",
        sa.Column("user", sa.String(200), primary_key=True),
        sa.Column("conversation", sa.String(32), primary_key=True, index=True),
        sa.Column("process", sa.String(32), nullable=False),
        sa.Column("place", sa.String(255), nullable=False),
        sa.Column("seen", sa.Float, nullable=False),
        sa.Column("stop", sa.Boolean, nullable=False),
    )
    op.create_table(
        "wrong_passwords",
        sa.Column("key", sa.String(64), primary_key=True),
        sa.Column("count", sa.Integer, nullable=False),
        sa.Column("until", sa.Float, nullable=False, index=True),
    )
    op.execute(sa.text("DELETE FROM schema_version"))
    op.execute(sa.text("INSERT INTO schema_version (id, version) VALUES (1, 3)"))
