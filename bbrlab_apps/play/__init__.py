"""``bbrlab play``: a scenario in real time, steered by hand at Mininet's prompt."""
