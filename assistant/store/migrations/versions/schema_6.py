"""When people logged in last and the time before, of which the page tells them."""

import sqlalchemy as sa
from alembic import op

revision, down_revision = "6", "5"


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "last_logins",
        sa.Column("name", sa.String(64), primary_key=True),
        sa.Column("last", sa.String(40), nullable=False),
        sa.Column("password", sa.String(64), nullable=False),
        sa.Column("before", sa.String(40), nullable=False),
        sa.Column("renewed", sa.Boolean, nullable=False),
    )
