"""How passages are found for a turn: one file a loop."""
