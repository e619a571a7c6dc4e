"""The dumbbell in ns-3, as a check by another engine: BBRv1, CUBIC and Reno as ns-3 implements them.

Usage: dumbbell.py POINTS.json RESULTS.json    (in the environment that `make ns3` makes; bbrlab ns3 calls it)

POINTS.json is a list of {rate_mbit, rtt_ms, buffer_bytes, loss, seed, duration_s, window_s, flows: [{cca, count, rtt_ms,
start_s}]}. RESULTS.json gets, for each, the goodput of each group in the window (bytes that the receivers' applications
have read) and how long it took.
"""

import json
import sys
import time

from ns import ns

SOCKETS = {"bbr1": "ns3::TcpBbr", "cubic": "ns3::TcpCubic", "reno": "ns3::TcpLinuxReno"}
ACCESS_MBIT_OVER_BOTTLENECK = 10  # as Tang: leaves of 100 Mbit/s at a bottleneck of 10
SEGMENT_BYTES = 1448
BUFFER_BYTES = 1 << 26
PORT = 5201


def link(rate_mbit, delay_ms, buffer_bytes=None):
    """A point-to-point helper."""
    helper = ns.PointToPointHelper()
    helper.SetDeviceAttribute("DataRate", ns.StringValue(f"{rate_mbit:g}Mbps"))
    helper.SetChannelAttribute("Delay", ns.StringValue(f"{delay_ms:g}ms"))
    size = f"{buffer_bytes}B" if buffer_bytes else "1000000p"
    helper.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", ns.QueueSizeValue(ns.QueueSize(size)))
    return helper


def run(point):
    """Simulate one point. Returns the goodput of each group in Mbit/s."""
    ns.RngSeedManager.SetSeed(1)
    ns.RngSeedManager.SetRun(point["seed"])
    for name, value in (
        ("SndBufSize", BUFFER_BYTES),
        ("RcvBufSize", BUFFER_BYTES),
        ("SegmentSize", SEGMENT_BYTES),
        ("InitialCwnd", 10),
    ):
        ns.Config.SetDefault("ns3::TcpSocket::" + name, ns.UintegerValue(value))
    routers = ns.NodeContainer()
    routers.Create(2)
    stack = ns.InternetStackHelper()
    stack.Install(routers)
    address, control = ns.Ipv4AddressHelper(), ns.TrafficControlHelper()
    subnet = 0

    def connect(helper, a, b):
        nonlocal subnet
        devices = helper.Install(a, b)
        address.SetBase(ns.Ipv4Address(f"10.{subnet // 256}.{subnet % 256}.0"), ns.Ipv4Mask("255.255.255.0"))
        subnet += 1
        addresses = address.Assign(devices)
        control.Uninstall(devices)  # the device's queue alone is the buffer
        return devices, addresses

    left, right = routers.Get(0), routers.Get(1)
    bottleneck, _ = connect(link(point["rate_mbit"], 0, point["buffer_bytes"]), left, right)
    if point["loss"]:
        errors = ns.CreateObject[ns.RateErrorModel]()
        errors.SetAttribute("ErrorRate", ns.DoubleValue(point["loss"]))
        errors.SetAttribute("ErrorUnit", ns.StringValue("ERROR_UNIT_PACKET"))
        bottleneck.Get(1).SetAttribute("ReceiveErrorModel", ns.PointerValue(errors))
    sinks = []
    fast = point["rate_mbit"] * ACCESS_MBIT_OVER_BOTTLENECK
    keep = []
    for group in point["flows"]:
        mine = []
        for i in range(group["count"]):
            ends = ns.NodeContainer()
            ends.Create(2)
            stack.Install(ends)
            sender, receiver = ends.Get(0), ends.Get(1)
            connect(link(fast, group["rtt_ms"] / 2), sender, left)
            _, addresses = connect(link(fast, 0), right, receiver)
            kind = ns.TypeId.LookupByName(SOCKETS[group["cca"]])
            ns.Config.Set(f"/NodeList/{sender.GetId()}/$ns3::TcpL4Protocol/SocketType", ns.TypeIdValue(kind))
            where = ns.InetSocketAddress(addresses.GetAddress(1), PORT)
            sink = ns.PacketSinkHelper("ns3::TcpSocketFactory", where.ConvertTo()).Install(receiver)
            bulk = ns.BulkSendHelper("ns3::TcpSocketFactory", where.ConvertTo())
            bulk.SetAttribute("MaxBytes", ns.UintegerValue(0))
            source = bulk.Install(sender)
            # A little apart, or flows would go in step to the nanosecond.
            source.Start(ns.Seconds(group["start_s"] + 0.01 * i + 0.001 * point["seed"]))
            mine.append(sink.Get(0))
            keep += [ends, sink, source]
        sinks.append(mine)
    ns.Ipv4GlobalRoutingHelper.PopulateRoutingTables()
    low, high = point["window_s"]

    def received():
        return [sum(s.GetObject[ns.PacketSink]().GetTotalRx() for s in group) for group in sinks]

    before = [0] * len(sinks)
    if low:
        ns.Simulator.Stop(ns.Seconds(low))
        ns.Simulator.Run()
        before = received()
    ns.Simulator.Stop(ns.Seconds(high - low))
    ns.Simulator.Run()
    after = received()
    ns.Simulator.Destroy()
    return [(b - a) * 8e-6 / (high - low) for a, b in zip(before, after, strict=True)]


def main(points_file, results_file):
    """Simulate every point."""
    with open(points_file, encoding="utf-8") as file:
        points = json.load(file)
    results = []
    for point in points:
        start = time.monotonic()
        goodputs = run(point)
        results.append({"goodput_mbit": goodputs, "wall_s": round(time.monotonic() - start, 2)})
        print(f"{point['label']}: {', '.join(f'{g:.2f}' for g in goodputs)} Mbit/s", flush=True)
    with open(results_file, "w", encoding="utf-8") as file:
        json.dump(results, file)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
