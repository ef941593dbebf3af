"""The training data of the suitability judge: tables written for Sequitur, and the recipe that makes pairs of them."""
