"""Finds the variants of each kind (strategies, loops, backends, readers, ...) by their files."""
