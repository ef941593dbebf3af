"""What every light page imports and learns first; the process that pages are forked from imports this alone."""

import assistant.web.server  # noqa: F401
from benchmarks.light import learn

learn()
