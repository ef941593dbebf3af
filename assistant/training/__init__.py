"""How the small models that check are trained: the recipes of their data, and one trainer for all."""
