"""A scenario in virtual time against real time: `bbrlab crosscheck`."""
