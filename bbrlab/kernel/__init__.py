"""Guest kernels: sources, builds, capabilities."""
