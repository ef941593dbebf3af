"""How the steps of a turn are named and timed."""
