"""What Snakemake asks of bbrlab: which code a stage depends on, what a campaign will cost, one at a time, its progress."""
