"""Alembic runs this: the steps go over the connection, and within the transaction, of whoever asked for them."""

from alembic import context

context.configure(connection=context.config.attributes["connection"])
context.run_migrations()
