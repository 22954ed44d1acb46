# %% [markdown]
# # Click funnels and sessions
#
# This recipe shows how far the visitors of a shop come, from looking at a product to paying for it, who has left a cart behind, and how
# clicks are divided into sessions.

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
# `cep.progress` answers for all steps at once. It has a row for each start, with the time of each step that was reached:

# %%
FUNNEL = "PATTERN SEQ(View v, Cart c, Pay p) WITHIN 30 minutes"
for way in cep.progress(clicks, FUNNEL, partition_by="user").to_pylist():
    cart = f"cart {way['c']:%H:%M}" if way["c"] else ""
    print(f"{way['user']:4} view {way['v']:%H:%M} {cart:10} {way['reached']} of 3")

# %% [markdown]
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
#
# A condition on the negated event counts from another event than the first, here from the cart. The window must be long enough for both
# steps:

# %%
SLOW = """
    PARTITION BY user
    PATTERN SEQ(View v, Cart c, NOT(Pay p))
    WHERE p.ts - c.ts <= 3 minutes
    WITHIN 1 hour
    RETURN c.ts AS since
"""
print("no payment in three minutes:", cep.match(clicks, SLOW)["user"].unique().to_pylist())

# %% [markdown]
# A session is a run of clicks of one user without a long pause. `s+` without an event type takes any click, and `strict_contiguity`
# compares each with the one right before it. `skip_past_last` keeps the whole run, and none that begins inside of it.

# %%
SESSIONS = """
    PARTITION BY user
    PATTERN s+
    WHERE strict_contiguity { s[i].ts - s[i-1].ts <= 30 minutes }
    RETURN count(s) AS clicks, last(s.ts) - first(s.ts) AS lasted, last(s.type) AS left_at
"""

for session in cep.match(clicks, SESSIONS, after_match="skip_past_last").to_pylist():
    print(f"{session['user']:4} {session['clicks']} clicks in {session['lasted']}, the last one {session['left_at']}")

# %% [markdown]
# Cleo's payment is a session of its own.
