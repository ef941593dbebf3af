"""Sequitur beside other programs of its kind, on the same questions, documents, language model and embedder."""
