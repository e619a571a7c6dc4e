"""Confines guests, and compilers of others' files: Landlock for files, a filter of system calls for all else.

Neither needs root. Both hold for the process and for all that it starts, and cannot be taken off again.
"""
