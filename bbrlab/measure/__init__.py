"""Decodes a guest's samples, computes metrics, and checks the run."""
