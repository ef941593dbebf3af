"""The sentences in which a turn is shown to people, and its JSON for programs."""
