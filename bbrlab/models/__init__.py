"""Models that predict what experiments measure."""
