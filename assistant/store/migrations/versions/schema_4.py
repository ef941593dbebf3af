"""Who is logged in, which was in the memory of a process before."""

import sqlalchemy as sa
from alembic import op

revision, down_revision = "4", "3"


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "sessions",
        sa.Column("hash", sa.String(64), primary_key=True),
        sa.Column("user", sa.String(64), nullable=False, index=True),
        sa.Column("password", sa.String(64), nullable=False),
        sa.Column("begun", sa.Float, nullable=False),
    )
