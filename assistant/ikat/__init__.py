"""TREC iKAT: its topics in, runs in its own format out, and its collection made searchable."""
