"""Many runs: which, how long they take, and their tables."""
