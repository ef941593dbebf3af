"""Everything that is kept in SQLite: conversations, users, exports."""
