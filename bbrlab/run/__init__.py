"""One run: from a point and a seed to a result folder."""
