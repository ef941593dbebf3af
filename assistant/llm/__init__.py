"""Language models: one file a backend, and the catalogue that says which weights are trusted."""

import os

# Read when the first OpenMP library is loaded (torch and llama.cpp each bring one), so it has to be set before either.
# Threads that spin while they wait would take the cores from the model whenever anything else runs.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
