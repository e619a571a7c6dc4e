"""Compares results: a sample of finished runs with the same runs made again, and the points of two campaigns."""
