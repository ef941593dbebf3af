"""The commands of `python -m assistant`: one file for each group."""
