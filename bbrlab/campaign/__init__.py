"""Snakemake and bbrlab: the plan of a campaign, its forecast and progress, the code that each stage depends on, clusters."""
