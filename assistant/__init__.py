"""Sequitur: a personal assistant whose answers follow from sources."""
