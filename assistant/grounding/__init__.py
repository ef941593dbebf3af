"""Ties what a reply says to the passages that say the same."""
