"""From prompt files to messages that fit the model."""
