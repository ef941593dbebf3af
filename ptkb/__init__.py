"""The personal text knowledge base: what a user says about themselves, kept, ranked and offered."""
