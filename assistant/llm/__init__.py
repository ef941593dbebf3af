"""Language models: backends, wrappers around them, and the catalogue of weights that are trusted."""

import os

# Read when the first OpenMP library is loaded (torch and llama.cpp each bring one), so it has to be set before either.
# Threads that spin while they wait would take the cores from the model whenever anything else runs.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
# torch keeps what oneDNN prepares for each shape of its inputs, a thousand of them by itself: hundreds of megabytes in
# a dozen turns, in which hardly a shape comes twice (docs/results/turn.md).
for name in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):
    os.environ.setdefault(name, "32")
