"""Where experiments run: virtual time (uml), a virtual machine in real time (qemu), or this machine itself (host).

Beside them what uml and qemu share (process), the folder that a guest works in (scratch) and the core that it has for
itself (cores).
"""
