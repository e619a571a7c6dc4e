"""Scenarios in ns-3, as a check by another engine: `bbrlab ns3`."""
