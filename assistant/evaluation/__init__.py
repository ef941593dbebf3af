"""Measures and runs: how good the parts and the whole are, on real data."""
