"""Results of many runs: figures, run folders, tables, seeds, and the results that ship."""
