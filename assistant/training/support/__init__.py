"""The support judge's training: statements made from questions, passages that back them, and passages that don't."""
