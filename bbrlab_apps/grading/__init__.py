"""Grading replications in a course: rubrics, submissions, checks, repeated runs, reports (courses/README.md)."""
