"""Ties each sentence of a reply to the passages that support it."""
