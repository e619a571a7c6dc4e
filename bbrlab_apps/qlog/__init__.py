"""A run's ACKs as qlog: `bbrlab qlog`."""
