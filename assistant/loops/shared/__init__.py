"""What several loops have in common."""
