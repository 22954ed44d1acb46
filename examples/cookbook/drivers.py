# %% [markdown]
# # Aggressive drivers
#
# This recipe finds aggressive drivers: those who accelerate sharply, drive fast, and brake hard. Cars report their speed and acceleration
# every second. None of the three is a single event. Each lasts for some seconds, and what matters is how these *situations* lie to each
# other in time. The question is that of TPStream.

# %%
import datetime as dt
from itertools import accumulate

import pyarrow as pa

import gpu_cep as cep

ACCELERATIONS = {  # m/s², a value for each second
    "red": [0, 0, 9, 9, 9, 9, 0, 0, 0, 0, 0, -10, -10, -10, -1, 0],
    "blue": [1, 2, 3, 3, 3, 3, 3, 3, 3, 3, 1, 1, -2, -3, -3, -1],
    "grey": [0, 9, 9, 0, 0, 0, 0, 0, 0, 0, -10, -10, -1, 0, 0, 0],
}
start = dt.datetime(2026, 3, 2, 8)
reports = pa.Table.from_pylist(
    [
        {"ts": start + dt.timedelta(seconds=second), "car": car, "speed": speed, "accel": accel}
        for car, accels in ACCELERATIONS.items()
        for second, (speed, accel) in enumerate(zip(accumulate(accels, initial=0), accels, strict=False))
    ]
)

# %% [markdown]
# `DEFINE` derives the situations. Each is a longest run of consecutive reports of one car that satisfy the condition, and lasts at least as
# long as `AT LEAST` says. `PATTERN` says how they lie to each other. The semicolon joins alternatives: the car is fast when the sprint
# ends, or has been so before.

# %%
AGGRESSIVE = """
    FROM reports r PARTITION BY r.car
    DEFINE sprint AS r.accel > 8 AT LEAST 3 s, fast AS r.speed > 25 AT LEAST 4 s, braking AS r.accel < -9 AT LEAST 2 s
    PATTERN sprint meets fast; sprint overlaps fast
        AND braking during fast; fast overlaps braking; fast meets braking
        AND sprint before braking
    WITHIN 5 minutes
    RETURN max(fast.speed) AS top, min(braking.accel) AS hardest, duration(fast) AS for
"""

for driver in cep.match(reports, AGGRESSIVE).to_pylist():
    print(f"{driver['detected_at']:%H:%M:%S}  {driver['car']}: {driver['top']} m/s for {driver['for']}, then {driver['hardest']} m/s²")

# %% [markdown]
# The blue car is fast but gentle; the grey one brakes hard but was never fast for long. The red driver is found at 08:00:14, when
# braking has ended. A warning should come sooner. With `detect="early"` a match comes out at the first report that decides it, whether or
# not the situations ever end:

# %%
for driver in cep.match(reports, AGGRESSIVE, detect="early").to_pylist():
    print(f"{driver['detected_at']:%H:%M:%S}  {driver['car']}, which still brakes: the match has no end, {driver['match_end']}")

# %% [markdown]
# `cep.plot(reports, AGGRESSIVE)` draws the situations over speed and acceleration, as in [Pictures of matches](../timelines.md). All
# relations are in [Interval patterns](../intervals.md).
