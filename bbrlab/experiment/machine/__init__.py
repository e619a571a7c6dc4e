"""Where experiments run: virtual time (uml), a virtual machine in real time (qemu), or this machine itself (host).

Beside them what uml and qemu share (process), and the core that a guest has for itself (cores).
"""
