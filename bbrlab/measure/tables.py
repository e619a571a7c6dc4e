"""Makes the tables of a run: samples.parquet, acks.parquet, short_flows.parquet."""

from __future__ import annotations

from typing import Any

import numpy as np

from bbrlab.experiment.links import crossed_by, name_of
from bbrlab.experiment.plan import Plan
from bbrlab.measure.queues import Queue
from bbrlab.measure.sample_schema import QUEUE_COLUMNS, of_link
from bbrlab.measure.sockets import Flows
from bbrlab.scenario.schema import Scenario


def short_flows_table(short: dict[int, Any]) -> Any:
    """The Arrow table of short_flows.parquet (columns: sample_schema.py)."""
    import pyarrow as pa

    parts = [pa.Table.from_pandas(s.table.assign(group=group), preserve_index=False) for group, s in short.items()]
    return pa.concat_tables(parts)


def acks_table(flows: Flows, start_ns: int) -> Any:
    """The Arrow table of acks.parquet (columns: sample_schema.py)."""
    assert flows.acks is not None
    columns = dict(flows.acks)
    return _table({"time_s": (columns.pop("time_ns") - start_ns) / 1e9, **columns})


def samples_table(scenario: Scenario, plan: Plan, flows: Flows, queues: dict[str, Queue]) -> Any:
    """The Arrow table of samples.parquet: one row per instant and flow (columns: sample_schema.py).

    Of several links in a row each has columns of its own (sample_schema.of_link()).

    An instant without any flow has one row with ``flow`` = -1, so that the bottleneck is always there.
    """
    group_of = np.array([f.group for f in plan.flows] + [-1], dtype="i2")
    first_of = [crossed_by(scenario, flow)[0][0] for flow in scenario.flows]
    bottleneck_of = [first_of[f.group] for f in plan.flows]
    main = queues[name_of(plan.content["bottlenecks"][0])].columns
    silent = ~np.isin(main["time_s"], flows.columns["time_s"])
    count = int(silent.sum())
    columns: dict[str, Any] = {}
    for name, values in flows.columns.items():
        if name == "time_s":
            filler: Any = main["time_s"][silent]
        elif name == "flow":
            filler = np.full(count, -1, values.dtype)
        else:
            filler = np.full(count, np.nan) if values.dtype.kind == "f" else np.zeros(count, values.dtype)
        columns[name] = np.concatenate([values, filler])
    order = np.lexsort((columns["flow"], columns["time_s"]))
    columns = {k: v[order] for k, v in columns.items()}
    columns["group"] = group_of[columns["flow"]]
    for name in QUEUE_COLUMNS:
        values = _at(main, name, columns["time_s"])
        for bottleneck, queue in queues.items():
            if queue.columns is not main:
                rows = np.array([f >= 0 and bottleneck_of[f] == bottleneck for f in columns["flow"]], dtype=bool)
                values[rows] = _at(queue.columns, name, columns["time_s"][rows])
        columns[f"queue_{name}"] = values
    for link in plan.content["bottlenecks"]:
        if "link" in link:
            queue = queues[name_of(link)]
            columns |= {
                of_link(f"queue_{n}", link["link"]): _at(queue.columns, n, columns["time_s"]) for n in QUEUE_COLUMNS
            }
    first = ["time_s", "flow", "group"]
    return _table({k: columns[k] for k in first + [k for k in columns if k not in first]})


def _table(columns: dict[str, Any]) -> Any:
    """An Arrow table of NumPy arrays of numbers. (PyArrow's own conversion imports pandas, which is slow.)"""
    import pyarrow as pa

    def column(values: Any) -> Any:
        if values.dtype.kind not in "iuf":
            return pa.array(values)
        buffers = [None, pa.py_buffer(np.ascontiguousarray(values))]
        return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), buffers)

    return pa.table({name: column(values) for name, values in columns.items()})


def _at(columns: dict[str, Any], name: str, times_s: Any) -> Any:
    index = np.clip(np.searchsorted(columns["time_s"], times_s), 0, len(columns["time_s"]) - 1)
    return columns[name][index].copy()
