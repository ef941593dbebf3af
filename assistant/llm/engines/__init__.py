"""The parts of backends that deserve a file of their own."""
