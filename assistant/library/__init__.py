"""Documents in: readers, chunks, indexing, and the starter library."""
