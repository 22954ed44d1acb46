"""Mark the rows of slices: a number that says to which slice a row was sent, whether it is the slice's own, and where it lies.

A mark is the slice's number, behind it a bit for rows that lie apart, and a bit for own rows. Events of earlier slices' matches
all come before a row that lies apart.
"""

from __future__ import annotations

OWN_BIT, APART_BIT = 1, 2
# The bits behind the slice's number.
FLAG_BITS = 2
EACH = 1 << FLAG_BITS
