# %% [markdown]
# # Stock trends
#
# This recipe finds two trends of stocks. In the first, a stock is traded heavily once, its price stays above its own running average, and
# then the volume collapses: somebody has stopped buying. This is Query 3 of SASE+. The second is a steady fall, and needs the robust
# strategy.

# %%
import datetime as dt

import pyarrow as pa

import gpu_cep as cep

TRADES = {  # each minute a price and a volume
    "ABC": [(100, 1500), (104, 1450), (101, 1400), (108, 1350), (107, 1300), (112, 1250), (111, 600), (90, 300)],
    "XYZ": [(60, 800), (52, 850), (58, 900), (55, 850), (54, 800), (57, 400), (59, 350), (61, 300)],
}
opening = dt.datetime(2026, 3, 2, 9, 30)
events = pa.Table.from_pylist(
    [
        {"ts": opening + dt.timedelta(minutes=minute), "symbol": symbol, "price": price, "volume": volume}
        for symbol, trades in TRADES.items()
        for minute, (price, volume) in enumerate(trades)
    ]
)

# %% [markdown]
# `a[1]` is the first trade of the trend, `avg(a[..i-1].price)` the average of those before the current one, and `a[a.LEN]` the
# last. The average is updated as events are bound, so nothing is computed twice.

# %%
SUPPORT = """
    PARTITION BY symbol
    PATTERN SEQ(a+, b)
    WHERE skip_till_next_match {
        a[1].volume > 1000 AND a[i].price > avg(a[..i-1].price) AND b.volume < 80% * a[a.LEN].volume
    }
    WITHIN 1 hour
    RETURN a.price AS prices, b.volume AS volume
"""

for trend in cep.match(events, SUPPORT, after_match="skip_past_last").to_pylist():
    print(f"{trend['symbol']} from {trend['match_start']:%H:%M} on: {trend['prices']}, then a volume of {trend['volume']}")

# %% [markdown]
# The trade at 101 is not above the average and is passed over. XYZ was never traded heavily.
#
# The second query asks for three trades at falling prices, the last at least 5 below the first. `skip_till_next_match` must take the first
# trade that fits. If that trade is a deep dip, no later price is below it, and the start leads to no match:

# %%
FALL = """
    PARTITION BY symbol
    PATTERN SEQ(a, b, c)
    WHERE b.price < a.price AND c.price < b.price AND c.price <= a.price - 5
    WITHIN 4 minutes
    RETURN a.price AS a, b.price AS b, c.price AS c
"""

for strategy in ("skip_till_next_match", "robust_skip_till_next_match"):
    falls = cep.match(events, FALL, strategy=strategy).to_pylist()
    print(f"{strategy}:", *(f"{fall['symbol']} {fall['a']} {fall['b']} {fall['c']}" for fall in falls), sep="\n    ")

# %% [markdown]
# The robust strategy passes over a trade that leads to no match, as if it were noise. It takes the first trade that leads to one: from 60
# it ignores the dip to 52 and goes on with 58. `skip_till_any_match` would list every fall. [Strategies](../strategies.md) shows
# all five on one stream.
