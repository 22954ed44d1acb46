# %% [markdown]
# # Chemotherapy cycles
#
# This recipe finds cycles of chemotherapy with growing doses of Prednisone, and the blood count after them. A cycle is a dose of
# Cyclophosphamide (C), a dose of Doxorubicin (D) and several doses of Prednisone (P), in any order. A blood count (B) follows. The question
# and its fifteen events are the running example of the thesis on SES patterns.

# %%
import datetime as dt

import pyarrow as pa

import gpu_cep as cep

ROWS = [  # patient, type, value, day of July
    (1, "C", 1672.5, 3), (1, "B", 7100.0, 4), (1, "P", 111.5, 5), (2, "B", 10100.0, 6), (1, "D", 84.0, 7),
    (2, "P", 88.0, 8), (2, "D", 84.0, 9), (2, "C", 1320.0, 10), (2, "P", 98.0, 11), (1, "P", 116.5, 12),
    (2, "P", 88.0, 15), (1, "B", 3400.0, 17), (2, "B", 4000.0, 18), (2, "B", 4900.0, 19), (1, "B", 3000.0, 22),
]  # fmt: skip
patients, types, values, days = zip(*ROWS, strict=True)
events = pa.table({"pid": patients, "type": types, "v": values, "ts": [dt.date(2010, 7, day) for day in days]})

# %% [markdown]
# `AND` is a set: its elements come in any order, and all of them before `b`. A language that only knows sequences would need six patterns,
# one for each order of C, P and D. Here the doses of P may even be mixed with the others. `p+` binds one dose or more, and
# `prev(p.v) < p.v` relates each to the one before. `[pid]` says that all events are of one patient. The engine makes it the key by which
# it splits the events.

# %%
CYCLES = """
    PATTERN SEQ(AND(C c, P p+, D d), B b)
    WHERE skip_till_next_match { [pid] AND prev(p.v) < p.v }
    WITHIN 15 days
    RETURN c.pid AS patient, p.v AS doses, b.v AS blood_count
"""

for cycle in cep.match(events, CYCLES).to_pylist():
    days = (cycle["match_end"] - cycle["match_start"]).days
    print(f"patient {cycle['patient']}, from {cycle['match_start']}, {days} days: P {cycle['doses']}, then B {cycle['blood_count']:,.0f}")

# %% [markdown]
# ![The events with a colour for each patient, and the three matches](../pictures/matches.svg)
#
# Patient 1 was given 111.5 and then 116.5 of Prednisone. The second patient has two answers, one from each event that can begin a
# cycle: one with both growing doses, and one that begins a day later with D. The third dose of 88 is not above 98 and is passed over.
#
# For one answer per cycle, ask for matches that do not overlap:

# %%
for cycle in cep.match(events, CYCLES, partition_by="pid", after_match="skip_past_last").to_pylist():
    print(f"patient {cycle['patient']}, from {cycle['match_start']}: P {cycle['doses']}, then B {cycle['blood_count']:,.0f}")
