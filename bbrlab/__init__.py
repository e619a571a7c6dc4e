"""TCP BBR experiments on real Linux kernels in virtual time."""
