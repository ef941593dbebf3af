"""The commands of `python -m assistant`: one file a group."""
