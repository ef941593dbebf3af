"""Language models: one file a backend, and the catalogue that says which weights are trusted."""
