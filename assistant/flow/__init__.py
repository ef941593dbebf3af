"""How the steps of a turn are found, named and timed."""
