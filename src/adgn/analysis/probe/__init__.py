"""Does the graph matter, in which direction, how far? In closed form, before any training."""
