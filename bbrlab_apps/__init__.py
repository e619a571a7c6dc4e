"""Applications beside the library: what nothing in bbrlab/ but its command line uses."""
