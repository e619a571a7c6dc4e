"""Guest kernels: where they come from, how they are built, what they can do."""
