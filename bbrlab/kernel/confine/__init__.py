"""What a guest, and what compiles a stranger's file, may do on this machine: Landlock for files, a filter of system calls for all else.

Neither needs root. Both hold for the process and for all that it starts, and cannot be taken off again.
"""
