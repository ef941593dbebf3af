"""One file for each version of the tables; `upgrade` leads to it from the one before."""
