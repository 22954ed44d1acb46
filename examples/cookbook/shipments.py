# %% [markdown]
# # Contaminated shipments
#
# This recipe finds the shipments that have carried contaminated food on, directly or through other sites. Each chain of shipments is an
# answer. The first leaves the contaminated site, and each next one leaves the site that the one before has reached. This is Query 2 of
# SASE+.

# %%
import datetime as dt

import pyarrow as pa

import gpu_cep as cep

SHIPMENTS = [  # minute, from, to
    (5, "farm", "dairy"), (10, "dairy", "bakery"), (12, "farm", "kitchen"), (20, "mill", "bakery"), (25, "kitchen", "bakery"),
    (31, "bakery", "school"), (40, "dairy", "hotel"), (52, "bakery", "hotel"), (300, "hotel", "school"),
]  # fmt: skip
midnight = dt.datetime(2026, 3, 2)
alert = {"ts": midnight, "type": "Alert", "kind": "contaminated", "site": "farm"}
rows = [{"ts": midnight + dt.timedelta(minutes=m), "type": "Shipment", "source": a, "target": b} for m, a, b in SHIPMENTS]
events = pa.Table.from_pylist([alert, *rows], schema=pa.schema(
    [("ts", pa.timestamp("us")), *((name, pa.string()) for name in ("type", "kind", "site", "source", "target"))]
))  # fmt: skip

# %% [markdown]
# `Shipment+ s[]` is a chain of shipments (Kleene closure), in the papers' spelling; `Shipment s+` is the same. `s[1]` is its first, and the
# condition with `s[i-1]` holds from the second on.
#
# The [strategy](../strategies.md) matters here. `skip_till_any_match` may pass over any event, also over one that could be bound. So it
# finds every chain: the food may go on with this shipment or with a later one.

# %%
CHAINS = """
    PATTERN SEQ(Alert a, Shipment+ s[])
    WHERE skip_till_any_match { a.kind = 'contaminated' AND s[1].source = a.site AND s[i].source = s[i-1].target }
    WITHIN 3 hours
    RETURN s.target AS sites
"""

for chain in cep.match(events, CHAINS).to_pylist():
    print(f"{chain['match_end']:%H:%M}  farm → {' → '.join(chain['sites'])}")

# %% [markdown]
# The mill's flour is harmless, and the shipment at 05:00 is outside the window. Under `skip_till_next_match` the first shipment that
# extends the chain must be taken. Then there is only one chain:

# %%
for chain in cep.match(events, CHAINS.replace("skip_till_any_match", "skip_till_next_match")).to_pylist():
    print(f"{chain['match_end']:%H:%M}  farm → {' → '.join(chain['sites'])}")

# %% [markdown]
# There can be many chains: their number doubles with each site that is reached on two ways. If you only need the number,
# [`output="count"`](../compressed.md) lists none of them. The sites that may be affected are the ends of the chains:

# %%
print("chains:", cep.match(events, CHAINS, output="count")["count"].to_pylist())
print("reached:", sorted({chain[-1] for chain in cep.match(events, CHAINS)["sites"].to_pylist()}))
