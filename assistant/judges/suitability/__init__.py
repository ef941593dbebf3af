"""Does a sentence offer what clashes with what the person said of themselves? Two judges together, see `judge.py`."""
