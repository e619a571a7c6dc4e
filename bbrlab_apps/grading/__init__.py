"""Grading replications in a course: rubrics, submissions as data, checks, runs made again, reports (courses/README.md)."""
