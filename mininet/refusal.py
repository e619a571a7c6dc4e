"""What to tell of a tc line that the kernel does not take: the scenario's field that it stands for."""

# {what is in a tc line: the fields of the scenario that decide what is}, the first that fits.
FIELDS = {
    " handle 30: ": "network.qdisc or network.buffer",
    " htb rate ": "network.rate_mbit",
    " tbf rate ": "network.rate_mbit or network.buffer",
    " handle 3: ": "hosts.receive_offload_us",
    " action police ": "network.policer",
    " clsact ": "network.policer",
    " gap 1 ": "network.data_path.reordering",
    " handle 2: ": "rtt_ms, network.jitter, network.data_path or network.loss",
}


def refusal(lines, printed):
    """One line for what tc printed when it refused one of ``lines``: the field, what was tried, tc's own reason."""
    words = [w for w in printed.splitlines() if w.strip()]
    place = [w.rpartition(":")[2] for w in words if w.startswith("Command failed")]
    reasons = [w for w in words if not w.startswith(("Command failed", "We have an error"))]
    line = lines[int(place[0]) - 1] if place and place[0].isdigit() else "; ".join(lines)
    field = next((name for part, name in FIELDS.items() if part in line + " "), "the path")
    return "%s: the kernel does not take `tc %s`, which stands for it (%s); choose other values" % (
        field, line, " ".join(reasons) or "it gives no reason")  # fmt: skip
