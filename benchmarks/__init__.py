"""Benchmarks of speed and memory; not part of the package."""
