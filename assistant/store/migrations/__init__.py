"""The steps from each version of the tables to the next, as Alembic runs them: see `assistant.store.migrate`."""
