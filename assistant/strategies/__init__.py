"""How an answer is made from passages: one file a strategy."""
