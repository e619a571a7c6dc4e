"""The commands that the workflow's rules call, a module for each stage (bbrlab/campaign/stages.py)."""
