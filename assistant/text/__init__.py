"""Plain functions over text: sentences, words that two texts share, markers, chunks."""
