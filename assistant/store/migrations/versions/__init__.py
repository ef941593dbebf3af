"""One file a version of the tables; `upgrade` leads to it from the one before."""
