"""Recordings of somebody's testbed: read, looked at, made a scenario, and drawn beside its runs."""
