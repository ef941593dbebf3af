"""Concatenation first; if it gives no answer, post-fusion over the same passages (post-fusion, section 3.3)."""

from assistant.flow.fallback import Fallback
from assistant.strategies import concat, post_fusion

TITLE = "All together, then one by one"
SUMMARY = "Reads all passages at once; if they give no answer, asks each alone and lets them vote."
FELL_BACK = "The passages together gave no answer, so each was asked alone."

run = Fallback(concat.run, post_fusion.run, FELL_BACK)
