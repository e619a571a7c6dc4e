"""Captures as short flows: `bbrlab traffic`."""
