# %% [markdown]
# # Click funnels
#
# This recipe shows how far the visitors of a shop come, from looking at a product to paying for it, and who has left a cart behind.

# %%
import datetime as dt

import pyarrow as pa

import gpu_cep as cep

VISITS = {  # user: minute and click
    "ann": "0 View, 2 Reviews, 3 Delivery, 5 Cart, 9 Pay",
    "ben": "1 View, 4 Cart, 6 View, 8 Cart",
    "cleo": "3 View, 5 Delivery, 6 Reviews, 7 Cart, 50 Pay",
    "dan": "4 View, 6 Reviews, 9 View",
    "eve": "7 Cart, 9 Pay",
}
midnight = dt.datetime(2026, 3, 2)
clicks = pa.Table.from_pylist(
    [
        {"ts": midnight + dt.timedelta(minutes=int(click.split()[0])), "user": user, "type": click.split()[1]}
        for user, visit in VISITS.items()
        for click in visit.split(", ")
    ]
)

# %% [markdown]
# A funnel is a sequence, and its steps are the beginnings of that sequence. `output="count"` gives the number of matches of each stream
# that has any, so its rows are the users who got that far. The default strategy passes over the clicks in between.

# %%
for steps in ("View v", "View v, Cart c", "View v, Cart c, Pay p"):
    reached = cep.match(clicks, f"PATTERN SEQ({steps}) WITHIN 30 minutes", partition_by="user", output="count")
    print(f"{steps:22} {reached.num_rows}")

# %% [markdown]
# Eve came by a link to her cart, and is in no step. Cleo paid, but 47 minutes after she came.
#
# Some visitors read the reviews and the terms of delivery before they buy. The order does not matter, so the query uses `AND`:

# %%
CAREFUL = "PATTERN SEQ(View v, AND(Reviews r, Delivery d), Cart c) WITHIN 30 minutes"
print("careful:", cep.match(clicks, CAREFUL, partition_by="user", output="count")["user"].to_pylist())

# %% [markdown]
# A cart is left behind if no payment follows. A `NOT` that stands last forbids an event from the end of the match to the end of the
# window, so such a query needs a window.

# %%
LEFT_BEHIND = """
    PARTITION BY user
    PATTERN SEQ(View v, Cart c, NOT(Pay p))
    WITHIN 30 minutes
    RETURN c.ts AS since
"""

for cart in cep.match(clicks, LEFT_BEHIND).to_pylist():
    print(f"{cart['user']}, since {cart['since']:%H:%M}")

# %% [markdown]
# Ben has left two carts. The window begins with the view, so Cleo's counts as left behind at 00:33, though she came back at 00:50: a longer
# window would have waited for her.
