"""How an answer is made from passages: one file for each strategy."""
