"""Everything that is kept in the database, SQLite or PostgreSQL: conversations, users, exports."""
