# %% [markdown]
# # Sensor faults
#
# This recipe finds sensors that fail. A failing sensor gets stuck at one value, shows a spike that no physics explains, or falls silent.
# Each of these is a small pattern. Their results are events again: two sensors that fail together point to what they share.

# %%
import datetime as dt

import pyarrow as pa

import gpu_cep as cep

READINGS = {  # bar, once a minute; None: nothing was sent
    "p1": [4.0, 4.1, 4.0, 9.7, 4.1, 4.0, 4.2, 4.1, 4.0, 4.1, 4.2, 4.1],
    "p2": [2.1, 2.0, 2.2, 2.2, 2.2, 2.2, 2.2, 2.1, 2.0, 2.1, 2.2, 2.1],
    "p3": [3.3, 3.2, 3.3, 3.4, 3.3, 3.2, None, None, None, None, 3.3, 3.2],
}
start = dt.datetime(2026, 3, 2, 6)
readings = pa.Table.from_pylist(
    [
        {"ts": start + dt.timedelta(minutes=minute), "sensor": sensor, "bar": bar}
        for sensor, series in READINGS.items()
        for minute, bar in enumerate(series)
        if bar is not None
    ]
)

# %% [markdown]
# All three look at neighbouring readings of one sensor, which is what `strict_contiguity` means: the very next event of the stream, or
# none. `r{4,}` are at least four readings, each equal to the one before.

# %%
FAULTS = {
    "stuck": "PATTERN r{4,} WHERE strict_contiguity { r[i].bar = r[i-1].bar }",
    "spike": """
        PATTERN SEQ(before, odd, after)
        WHERE strict_contiguity { abs(odd.bar - before.bar) > 3 AND abs(after.bar - before.bar) < 0.5 }
    """,
    "silent": "PATTERN SEQ(r, s) WHERE strict_contiguity { s.ts - r.ts > 3 minutes }",
}

found = []
for kind, pattern in FAULTS.items():
    for fault in cep.match(readings, pattern, partition_by="sensor", after_match="skip_past_last", columns="bar").to_pylist():
        print(f"{fault['sensor']} {kind} from {fault['match_start']:%H:%M} to {fault['match_end']:%H:%M}")
        found.append({"sensor": fault["sensor"], "kind": kind, "ts": fault["match_start"], "until": fault["match_end"]})

# %% [markdown]
# `skip_past_last` reports the five equal readings of p2 as one fault; otherwise a run of four would be one from the second on, too.
#
# The faults, in one table, are the events of the next query. It asks which sensors had faults at the same time:

# %%
TOGETHER = """
    PATTERN SEQ(a, b)
    WHERE skip_till_any_match { a.sensor <> b.sensor AND b.ts <= a.until }
    WITHIN 10 minutes
    RETURN a.sensor AS a, a.kind AS a_kind, b.sensor AS b, b.kind AS b_kind
"""

for pair in cep.match(pa.Table.from_pylist(found), TOGETHER, ties="position", order_by="sensor").to_pylist():
    print(f"{pair['match_start']:%H:%M}  {pair['a']} {pair['a_kind']} and {pair['b']} {pair['b_kind']}")
