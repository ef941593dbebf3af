"""The larger parts of backends."""
