"""What several readers have in common."""
