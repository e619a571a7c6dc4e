"""``bbrlab artifact``: a finished campaign as one archive, and how bbrlab is cited."""
