"""Where experiments run: virtual time (uml) or this machine (host)."""
