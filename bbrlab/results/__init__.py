"""Many runs: which, in which folders, and their tables."""
