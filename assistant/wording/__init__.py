"""What a turn says to people and to programs."""
