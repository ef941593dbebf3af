"""What there is of each kind, found by its files: the lowest room, since the settings are made of these names."""
