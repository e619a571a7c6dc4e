"""Where experiments run: virtual time (uml), a virtual machine (qemu), or this machine (host)."""
