"""Does a sentence offer something that clashes with a fact of the person? Two judges together; see `judge.py`."""
