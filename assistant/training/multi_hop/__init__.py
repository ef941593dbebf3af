"""Teaches the judge of multi-hop questions."""
