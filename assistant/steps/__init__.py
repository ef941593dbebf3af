"""The steps of a turn: one file for each step."""
