"""Ask what the documentation and the tests of other languages ask, over streams of the same shape: the answers are theirs."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pytest

import gpu_cep as cep

ANY, STRICT = {"strategy": "skip_till_any_match"}, {"strategy": "strict_contiguity"}
NEXT_ROW, PAST_LAST = {"after_match": "skip_to_next"}, {"after_match": "skip_past_last"}
SUBSETS = ("B4 B5 B6", "B4 B5", "B4 B6", "B5 B6", "B4", "B5", "B6")

# An event: its type, its number, its key behind a slash, its time behind an at sign if that is not its place.
Event = tuple[str, str, dict[str, Any], list[str]]
FLINK: dict[str, Event] = {
    "notNext": (
        "A1 C2 B3 C4 D5", "PATTERN OR(SEQ(A a, NEXT(C c), D d), SEQ(A a, NEXT(X x), C c, D d)) WHERE x.type NOT IN ('B', 'C')", {},
        ["A1 C2 D5"],
    ),
    "notNext that is there": ("A1 B2 C3 D4", "PATTERN OR(SEQ(A a, NEXT(C c), D d), SEQ(A a, NEXT(x), C c)) WHERE x.type <> 'B'", {}, []),
    "notFollowedBy before followedByAny": ("A1 C2 B3 C4 D5", "PATTERN SEQ(A a, NOT(B b), ANY(C c), D d)", {}, ["A1 C2 D5"]),
    "notFollowedBy before optional": ("A1 C2 B3 C4 D5", "PATTERN SEQ(A a, NOT(B b), C c?, D d)", {}, ["A1 C2 D5"]),
    "notFollowedBy before optional times": (
        "A1 C2 B3 C4 D5", "PATTERN SEQ(A a, NOT(B b), SEQ(C c{2})?, D d)", {}, ["A1 C2 C4 D5"]
    ),
    "notFollowedBy behind times, in the loop, too": ("A1 B2 C3 B4 D5", "PATTERN SEQ(A a, B b, NOT(C x), B e, NOT(C c), D d)", {}, []),
    "notFollowedBy behind combinations": (
        "A0 B1 B2 B3 C0 B4 B5 B6 D0", "PATTERN SEQ(A a, B b+ UNTIL (type = 'C'), NOT(C c), D d)", ANY, [f"A0 {each} D0" for each in SUBSETS]
    ),
    "notFollowedBy before combinations": (
        "A0 B1 C0 B4 B5 B6 D0", "PATTERN SEQ(A a, NOT(C c), B b+, D d)", ANY, ["A0 B1 D0", *(f"A0 B1 {each} D0" for each in SUBSETS)]
    ),
    "notNext behind a loop": ("A1 B2 C3 B4 D5", "PATTERN SEQ(A a, B b+ UNTIL (type = 'C'), NEXT(D d))", ANY, ["A1 B4 D5"]),
    "times, noSkip": ("A1 A2 A3 A4 A5", "PATTERN A a{3}", {}, ["A1 A2 A3", "A2 A3 A4", "A3 A4 A5"]),
    "times, skipPastLastEvent": ("A1 A2 A3 A4 A5 A6", "PATTERN A a{3}", PAST_LAST, ["A1 A2 A3", "A4 A5 A6"]),
    "followedByAny, skipToNext": ("A1 B2 A3 B4", "PATTERN SEQ(A a, ANY(B b))", NEXT_ROW, ["A1 B2", "A3 B4"]),
    "a loop at the end, skipToNext": ("A1 B2 B3 B4", "PATTERN SEQ(A a, B b+)", ANY | NEXT_ROW, ["A1 B2"]),
    "mixed gaps, skipPastLastEvent": (
        "A1 A2 B3 B4 C5 C6 D7 D8", "PATTERN SEQ(A a, ANY(B b), ANY(C c), D d)", PAST_LAST, ["A1 B3 C5 D7"]
    ),
    "until, allowCombinations": (
        "C0 B4 B5 B6 B7 B8", "PATTERN SEQ(C c, NOT(B x), B b+ UNTIL (v = 7), B e) WHERE e.v = 7", ANY,
        ["C0 B4 B7", "C0 B4 B5 B7", "C0 B4 B6 B7", "C0 B4 B5 B6 B7"],
    ),
    "until, followedByAny": ("C0 B1 B2 B9 B3", "PATTERN SEQ(C c, B b+ UNTIL (v = 9))", ANY, ["C0 B1", "C0 B2", "C0 B1 B2", "C0 B3"]),
    "greedy star": ("C1 A2 X3 A4 D5", "PATTERN OR(SEQ(C c, A a+, D d), SEQ(C c, NOT(A x), D d))", {}, ["C1 A2 A4 D5"]),
    "greedy star of none": ("C1 X2 D3", "PATTERN OR(SEQ(C c, A a+, D d), SEQ(C c, NOT(A x), D d))", {}, ["C1 D3"]),
    "greedy before optional": ("C1 A2 A3 D4 E5", "PATTERN SEQ(C c, A a+, D d?, E e)", {}, ["C1 A2 A3 E5", "C1 A2 A3 D4 E5"]),
    "greedy until": ("C0 A1 A2 A9 D3", "PATTERN SEQ(C c, A a+ UNTIL (v > 8), D d)", {}, ["C0 A1 A2 D3"]),
    "oneOrMore": ("C0 X1 A2 A3 X4 A5 B6", "PATTERN SEQ(C c, SEQ(A a){1,9}, B b)", {}, ["C0 A2 B6", "C0 A2 A3 B6", "C0 A2 A3 A5 B6"]),
    "oneOrMore at the end, next": ("A1 B2 B3 B4", "PATTERN SEQ(A a, SEQ(B b){1,9})", STRICT, ["A1 B2", "A1 B2 B3", "A1 B2 B3 B4"]),
    "oneOrMore at the beginning": ("B1 B2 C3", "PATTERN SEQ(SEQ(B b){1,9}, C c)", {}, ["B1 C3", "B1 B2 C3", "B2 C3"]),
    "oneOrMore, optional, until": (
        "C0 A1 A2 A9 A3", "PATTERN SEQ(C c, SEQ(A a){0,9}, A e) WHERE e.v = 9 AND a.v <> 9", {}, ["C0 A9", "C0 A1 A9", "C0 A1 A2 A9"]
    ),
    "notFollowedBy before oneOrMore": (
        "A0 B1 C0 B4 B5 D0", "PATTERN SEQ(A a, NOT(C c), SEQ(B b){1,9}, D d)", {}, ["A0 B1 D0", "A0 B1 B4 D0", "A0 B1 B4 B5 D0"]
    ),
    "oneOrMore, consecutive": (
        "C0 X1 A2 A3 X4 A5 B6", "PATTERN SEQ(C c, A a, SEQ(NEXT(A e)){0,9}, B b)", {}, ["C0 A2 B6", "C0 A2 A3 B6"]
    ),
    "oneOrMore, allowCombinations": (
        "C0 A1 A2 A3 B4", "PATTERN SEQ(C c, A a, SEQ(ANY(A e)){0,9}, B b)", {}, ["C0 A1 B4", "C0 A1 A2 B4", "C0 A1 A3 B4", "C0 A1 A2 A3 B4"]
    ),
    "times(2), consecutive, optional, followedByAny": (
        "C0 A1 X2 A3 A4 E5", "PATTERN SEQ(C c, SEQ(ANY(A a), NEXT(A b))?, E e)", {}, ["C0 E5", "C0 A3 A4 E5"]
    ),
    "group of next": (
        "C0 A1 B2 X3 A4 B5 D6", "PATTERN SEQ(C c, SEQ(NEXT(A a), NEXT(B b)){1,2}, D d)", {}, ["C0 A1 B2 D6"]
    ),
    "times(2, 3)": ("C0 A1 A2 A3 B4", "PATTERN SEQ(C c, SEQ(A a){2,3}, B b)", {}, ["C0 A1 A2 B4", "C0 A1 A2 A3 B4"]),
    "group, optional": ("C1 A2 A3 B4 D5", "PATTERN SEQ(C c, SEQ(A a, B b)?, D d)", {}, ["C1 D5", "C1 A2 B4 D5"]),
    "group, oneOrMore": ("C1 A2 B3 A4 B5 D6", "PATTERN SEQ(C c, SEQ(A a, B b){1,9}, D d)", {}, ["C1 A2 B3 D6", "C1 A2 B3 A4 B5 D6"]),
    "group, zeroOrMore without one": ("C1 A2 D3", "PATTERN SEQ(C c, SEQ(A a, B b){0,9}, D d)", {}, ["C1 D3"]),
    "star between branches": (
        "C0 B4 B5 B6 X1 D1 D2", "PATTERN SEQ(C c, B b*, X x, D d)", ANY,
        [f"C0{each} X1 {last}" for each in ("", *(f" {each}" for each in SUBSETS)) for last in ("D1", "D2")],
    ),
    "an iterative condition": (
        "S1 M1 M2 S2 M3 M1 E1",
        "PATTERN SEQ(S s, NOT(M x), M m+, E e) WHERE skip_till_any_match { m[i].v + sum(m[..i-1].v) < 5 AND m[1].v < 5 }", {},
        ["S1 M1 E1", "S1 M1 M2 E1", "S1 M1 M3 E1", "S1 M1 M1 E1", "S1 M1 M2 M1 E1", "S2 M3 E1", "S2 M3 M1 E1"],
    ),
    "a condition on a loop before": ("S1 S2 E3", "PATTERN SEQ(S s+, E e) WHERE sum(s.v) >= 2", ANY, ["S2 E3", "S1 S2 E3"]),
}  # fmt: skip
MIXED = "A1 B1 C1 B2 A2 D1 E1 F1 D2 B3 G1 D3"
ESPER: dict[str, Event] = {
    "b -> every d": (MIXED, "PATTERN SEQ(B b, ANY(D d)) WHERE b.v = 1", {}, ["B1 D1", "B1 D2", "B1 D3"]),
    "every b -> d": (MIXED, "PATTERN SEQ(B b, D d)", {}, ["B1 D1", "B2 D1", "B3 D3"]),
    "every (a -> b -> a)": (MIXED, "PATTERN SEQ(A a, B b, A c)", PAST_LAST, ["A1 B1 A2"]),
    "every (b and d)": (MIXED, "PATTERN AND(B b, D d)", PAST_LAST, ["B1 D1", "D2 B3"]),
    "a until d": (MIXED, "PATTERN SEQ(A a+, D d)", PAST_LAST, ["A1 A2 D1"]),
    "(a or b) until d3": (MIXED, "PATTERN SEQ(x+, D d) WHERE x.type IN ('A', 'B') AND d.v = 3", PAST_LAST, ["A1 B1 B2 A2 B3 D3"]),
    "[4] (a or b)": (MIXED, "PATTERN x{4} WHERE x.type IN ('A', 'B')", PAST_LAST, ["A1 B1 B2 A2"]),
    "[:2] b until g": (MIXED, "PATTERN SEQ(B b{1,2}, G g)", PAST_LAST, ["B1 B2 G1"]),
    "[2:] b until a": (MIXED, "PATTERN SEQ(B b{2,}, A a)", {}, ["B1 B2 A2"]),
    "c -> [2] b -> d": (MIXED, "PATTERN SEQ(C c, B b{2}, D d)", {}, ["C1 B2 B3 D3"]),
    "every (b -> d) and not g": (MIXED, "PATTERN SEQ(B b, NOT(G g), D d)", PAST_LAST, ["B1 D1"]),
    "(A | B) (C | D), all matches": ("X1 A2 X3 B4 X5 B6 C7", "PATTERN SEQ(OR(A a, B b), OR(C c, D d))", STRICT, ["B6 C7"]),
    "A ((B C)? | (D E)?)": ("A1 D2 E3", "PATTERN SEQ(A a, OR(SEQ(B b, C c), SEQ(D d, E e)){0,1})", STRICT, ["A1", "A1 D2 E3"]),
    "(A? B) | (A? C)": ("A1 C2", "PATTERN SEQ(A a?, OR(B b, C c))", STRICT, ["A1 C2", "C2"]),
    "(A B)* C D": (
        "A1 B2 A3 B4 C5 D6", "PATTERN SEQ(SEQ(A a, B b){0,3}, C c, D d)", STRICT, ["C5 D6", "A3 B4 C5 D6", "A1 B2 A3 B4 C5 D6"]
    ),
    "A+ (D E)+": ("A1 D2 E3 D4 E5", "PATTERN SEQ(A a+, SEQ(D d, E e){1,4})", STRICT, ["A1 D2 E3", "A1 D2 E3 D4 E5"]),
}  # fmt: skip
SIDDHI: dict[str, Event] = {
    "<2:5>": ("A25 A47 A13 A48 B45 B55", "PATTERN SEQ(A a{2,5}, B b) WHERE a.v > 20", PAST_LAST, ["A25 A47 A48 B45"]),
    "<2:5> that goes on": ("A25 B45 A48 B55", "PATTERN SEQ(A a{2,5}, B b)", {}, ["A25 A48 B55"]),
    "e1[1]": ("A25 A47 B45 B55", "PATTERN SEQ(SEQ(A a){2}, B b) WHERE b.v > a2.v", {}, ["A25 A47 B55"]),
    "<0:5>": ("B45", "PATTERN SEQ(SEQ(A a{1,5})?, B b)", {}, ["B45"]),
    "not for a second": ("A5@0 B8@11", "PATTERN SEQ(A a, NOT(B b)) WHERE b.v > a.v WITHIN 10", {}, ["A5"]),
    "not for a second behind two": (
        "A1@0 B2@9 C5@15 A6@30 B7@39 C8@55", "PATTERN SEQ(A a, B b, NOT(C c)) WHERE c.ts - b.ts <= 10 WITHIN 99", PAST_LAST, ["A6 B7"]
    ),
    "or": ("A55 B10", "PATTERN SEQ(A a, OR(B b, B c)) WHERE b.v > a.v AND c.v = 10", {}, ["A55 B10"]),
    "and": ("A55 B72 B4", "PATTERN SEQ(A a, AND(B b, B c)) WHERE b.v > a.v AND c.v = 4", {}, ["A55 B72 B4"]),
}  # fmt: skip
TAGS = "A1 B2 M3 B4 C5 K6 D7 M8 C9 B10 C11 D12 A13 B14 O15 C16 D17 P18"
EQL: dict[str, Event] = {
    "one sequence for each step": (
        "A1/r A2/r B3/e B4/r B5/r C6/e A7/e C8/r B9/e C10/r C11/e", "PATTERN SEQ(A a, NOT(A x), B b, C c) WHERE [k]", {},
        ["A2 B4 C8", "A7 B9 C11"],
    ),
    "until": ("A1/x B2/x A3/y B4/y C5/y A6/z C7/z B8/z", "PATTERN SEQ(A a, NOT(C c), B b) WHERE [k]", {}, ["A1 B2", "A3 B4"]),
    "missing between": ("N1 N2 M3 N4", "PATTERN SEQ(N a, NOT(M m), NEXT(N b)) WITHIN 99", {}, ["N1 N2"]),
    "missing at the end": ("N1 N2 M3 N4", "PATTERN SEQ(N a, NOT(M m)) WITHIN 99", {}, ["N4"]),
    "missing at the beginning": ("M0@0 N1@10 M2@20 N3@21 N4@29 N5@31", "PATTERN SEQ(NOT(M m), N n) WITHIN 3", {}, ["N1", "N4", "N5"]),
    "the second candidate": ("N1 N2 M3 N4 N5 M6", "PATTERN SEQ(N a, N b, NOT(M m), N c) WITHIN 99", {}, ["N2 N4 N5"]),
    "several missing": (TAGS, "PATTERN SEQ(A a, B b, NOT(M m), C c, NOT(K k), D d) WITHIN 99", {}, ["A13 B14 C16 D17"]),
    "several missing, one of them there": (
        TAGS, "PATTERN SEQ(A a, B b, NOT(M m), C c, NOT(K k), D d, NOT(P p)) WITHIN 99", {}, []
    ),
}  # fmt: skip
CLICKHOUSE_AND_KQL: dict[str, Event] = {
    "sequenceMatch passes over what is not described": ("A1 C3 B2", "PATTERN SEQ(A a, B b)", {}, ["A1 B2"]),
    "sequenceMatch sees what is described": ("A1 C3 B2", "PATTERN SEQ(A a, NOT(C c), B b)", {}, []),
    "sequenceCount": ("A1 C2 B3 A4 C5 B6", "PATTERN SEQ(A a, B b)", PAST_LAST, ["A1 B3", "A4 B6"]),
    "scan from start to stop": (
        "X0@0 S1@1 X2@2 X3@3 P4@4 X5@6 S6@8 X7@11 P8@12", "PATTERN SEQ(S s, x*, P p) WHERE x.type NOT IN ('S', 'P') WITHIN 5",
        STRICT | PAST_LAST, ["S1 X2 X3 P4", "S6 X7 P8"],
    ),
}  # fmt: skip
CARS = "H5@5 F137@137 H301@301 T360@360 T571@571 H722@722 B825@825"
OVEN = "T120@0 P15@0 T100@1 P14@1 T70@2 P13@2 T50@3 P12@3 T30@4 P8@4 T20@5 P7@5 T19@6 P6@6 T18@7 P5@7"
AZURE: dict[str, Event] = {
    "correlated events, by LAG": ("A1 A2 B3 A4", "PATTERN SEQ(x, NEXT(y)) WHERE x.type = y.type WITHIN 90", {}, ["A1 A2"]),
    "the start of each end, by LAST": ("S1 E5 E8", "PATTERN SEQ(S s, NOT(S x), E e) WITHIN 9", ANY, ["S1 E5", "S1 E8"]),
    "ISFIRST": (CARS, "PATTERN SEQ(NOT(x), y) WHERE floor(x.ts / 600) = floor(y.ts / 600) WITHIN 600", {}, ["H5", "H722"]),
    "ISFIRST of each make": (
        CARS, "PATTERN SEQ(NOT(x), y) WHERE floor(x.ts / 600) = floor(y.ts / 600) AND x.type = y.type WITHIN 600", {},
        ["H5", "F137", "T360", "H722", "B825"],
    ),
    "a low temperature, and the power of the last minutes": (
        OVEN, "PATTERN SEQ(P p, NOT(P q), ANY(T t)) WHERE p.v > 10 AND q.v > 10 AND t.v <= 40 WITHIN 3", {},
        ["P12 T30", "P12 T20", "P12 T19"],
    ),
}  # fmt: skip
OPENCEP: dict[str, Event] = {
    "four to five events": (
        "A0 A1 A2 A3 A4", "PATTERN A a{4,5}", ANY,
        ["A0 A1 A2 A3", "A0 A1 A2 A3 A4", "A0 A1 A2 A4", "A0 A1 A3 A4", "A0 A2 A3 A4", "A1 A2 A3 A4"],
    ),
    "simple not": (
        "A11@30 A13@31 A16@32 A18@33 A12@34 B13@35 C500@36 B13@37 C501@38",
        "PATTERN SEQ(A a, NOT(B b), C c) WHERE a.v > b.v AND b.v < c.v WITHIN 5", ANY, ["A13 C500", "A12 C500", "A12 C501"],
    ),
    "not at the end": (
        "A40@40 B41@41 C42@42 Z43@43 B44@44 C45@45", "PATTERN SEQ(A a, B b, C c, NOT(Z z)) WITHIN 5", ANY, ["A40 B41 C45", "A40 B44 C45"]
    ),
}  # fmt: skip

# Rows are numbered from 1, with values `v`. The answer: each row of a match behind its variable, or the measures of matches.
Rows = tuple[str, str, list[Any]]
FALL, RISE = "B AS v < PREV(v)", "C AS v > PREV(v)"
PRICES = "12 17 19 21 25 12 15 20 24 25 19 15 25 25 14 12 14 24 23 22"
V = "PATTERN (S B+ C+) DEFINE B AS v < PREV(v), C AS v > PREV(v)"
TRINO: dict[str, Rows] = {
    "an empty alternative first": ("9 8 7 7", "PATTERN (() | A)", ["", "", "", ""]),
    "^ behind a row": ("9 8 7", "PATTERN (A ^)", []),
    "$ before a row": ("9 8 7", "PATTERN ($ A)", []),
    "alternatives in order": ("9 8 7 7", f"PATTERN (B | C | A) DEFINE {FALL}, C AS v <= PREV(v)", ["A1", "B2", "B3", "C4"]),
    "PERMUTE in lexicographic order": ("9 8 7", f"PATTERN (PERMUTE(B, C)) DEFINE {FALL}, C AS v < PREV(v)", ["B2 C3"]),
    "{,2}": ("9 8 7 7", "PATTERN (B{,2}) DEFINE B AS v <= PREV(v)", ["", "B2 B3", "B4"]),
    "{,}?": ("9 8 7 7", "PATTERN (B{,}?) DEFINE B AS v <= PREV(v)", ["", "", "", ""]),
    "{2,}?": ("9 8 7 7", "PATTERN (B{2,}?) DEFINE B AS v <= PREV(v)", ["B2 B3"]),
    "nested exclusions": ("9 8 7 8 9 5 4 6", f"PATTERN (A {{- {{- B+ -}} C+ -}}) DEFINE {FALL}, {RISE}", ["A1", "A6"]),
    "quantified exclusions": ("9 8 7 8 9 5 4 6", f"PATTERN (A {{- C -}}{{2,3}} {{- B -}}{{2,3}}) DEFINE {FALL}, {RISE}", ["A3"]),
    "an exclusion of nothing": ("9 8 9", f"PATTERN (A B {{- ()* -}} C) DEFINE {FALL}, {RISE}", ["A1 B2 C3"]),
    "a reference back to the first alternative": ("1 1", "PATTERN ((A | B)* X) DEFINE X AS v = A.v", ["A1 X2"]),
    "a reference back to the second": ("1 1", "PATTERN ((A | B)* X) DEFINE X AS v = B.v", ["B1 X2"]),
    "references to both": (
        "1 2 3 4 5 6", "PATTERN ((A | B)* X) DEFINE X AS v = PREV(LAST(A.v), 3) + FIRST(A.v) + PREV(LAST(B.v), 2)", ["B1 A2 A3 A4 B5 X6"]
    ),
    "labels of a subset": (
        "1 2 3 4 5", "PATTERN ((A | B)* X $) SUBSET U = (A, B)"
        " DEFINE X AS PREV(CLASSIFIER(U), 1) = 'A' AND LAST(CLASSIFIER(), 3) = 'B' AND FIRST(CLASSIFIER(U)) = 'B'", ["B1 B2 A3 A4 X5"],
    ),
    "cycles of no row": ("9 8 7 7", f"PATTERN ((B ()*)*) DEFINE {FALL}", ["", "B2 B3", ""]),
    "a quantified ^": ("9 8 7 7", f"PATTERN (^+ | B) DEFINE {FALL}", ["", "B2", "B3"]),
    "a quantified $": ("9 8 7 7", f"PATTERN (B A $+) DEFINE {FALL}", ["B3 A4"]),
    "SKIP TO a subset": (
        "9 8 7 8 7 8", f"AFTER MATCH SKIP TO U PATTERN (A B+ C+ D?) SUBSET U = (C, D) DEFINE {FALL}, {RISE}, D AS false",
        ["A1 B2 B3 C4", "A4 B5 C6"],
    ),
    "NEXT(CLASSIFIER()) has no label yet": ("9 8 7", "PATTERN (A+) DEFINE A AS NEXT(CLASSIFIER()) = 'A'", []),
    "the last of all combinations": (
        "1 2 3 4 5", "PATTERN ((A | B)+ X) DEFINE X AS " + " AND ".join(f"FIRST(CLASSIFIER(), {n}) = 'B'" for n in range(4)),
        ["B1 B2 B3 B4 X5"],
    ),
    "nested loops without an end": ("1 " * 30, "PATTERN ((A+)+ B) DEFINE B AS v = 2", []),
}  # fmt: skip
OTHERS: dict[str, Rows] = {
    "Oracle's V": (
        PRICES, f"MEASURES S.n AS a, LAST(B.n) AS b, LAST(C.n) AS c AFTER MATCH SKIP TO LAST C {V}",
        [(5, 6, 10), (10, 12, 13), (14, 16, 18)],
    ),
    "Oracle's W": (PRICES, f"MEASURES S.n AS a, C.n AS c {V.replace('B+ C+', 'B+ C+ B+ C+')}", [(5, 13)]),
    "Oracle's sessions": (
        "2 12 22 32 43 47 48 59 60 68", "MEASURES count(*) AS n, LAST(v) - FIRST(v) AS d PATTERN (B S*) DEFINE S AS v - PREV(v) <= 10",
        [(4, 30), (3, 5), (3, 9)],
    ),
    "Snowflake's LAG": (
        "50 36 39 42 30 47 71 80", f"MEASURES count(B.*) AS b, count(C.*) AS c AFTER MATCH SKIP TO LAST C {V.replace('PREV', 'LAG')}",
        [(1, 2), (1, 3)],
    ),
    "Snowflake's guide": (
        "50 36 39 42 30 47 71 80 75 63", "MEASURES MATCH_NUMBER() AS m, FIRST(n) AS s, LAST(n) AS e, COUNT(*) AS r, COUNT(B.*) AS b,"
        f" COUNT(C.*) AS c ONE ROW PER MATCH AFTER MATCH SKIP TO LAST C {V.replace('PREV', 'LAG')}",
        [(1, 1, 4, 4, 1, 2), (2, 4, 8, 5, 1, 3)],
    ),
    "Vertica's first user": (
        "1 2 2 3", "PATTERN (Entry Onsite* Purchase) DEFINE Entry AS v = 1, Onsite AS v < 3, Purchase AS v = 3",
        ["Entry1 Onsite2 Onsite3 Purchase4"],
    ),
    "Vertica's second user": (
        "1 2 3", "PATTERN (Entry Onsite* Purchase) DEFINE Entry AS v = 1, Onsite AS v < 3, Purchase AS v = 3", ["Entry1 Onsite2 Purchase3"]
    ),
    "Aster's nPath": (
        "1 1 2 2 3 3", "MEASURES count(U.*) AS n, FIRST(U.v) AS f, LAST(U.v) AS l PATTERN (A B) SUBSET U = (A, B)"
        " DEFINE A AS v = 1, B AS v = 2", [(2, 1, 2)],
    ),
    "Flink SQL's LAST(x, 1)": (
        "12 17 19 21 25 18 15 14 24 25 19", "MEASURES S.n AS a, LAST(B.n) AS b, C.n AS c PATTERN (S B+ C)"
        " DEFINE B AS (LAST(B.v, 1) IS NULL AND B.v < S.v) OR B.v < LAST(B.v, 1), C AS C.v > LAST(B.v, 1)", [(5, 8, 9)],
    ),
    "Flink SQL's average": (
        "12 17 13 16 25 2 4 10 15 25 25 30", "MEASURES FIRST(A.n) AS a, LAST(A.n) AS b, AVG(A.v) AS m"
        " PATTERN (A+ B) DEFINE A AS AVG(A.v) < 15", [(1, 4, 14.5), (6, 11, 13.5)],
    ),
    "Flink CEP's skipToFirst": ("1 1 1 1 1 1", "AFTER MATCH SKIP TO FIRST B PATTERN (A{2} B{2})", ["A1 A2 B3 B4", "A3 A4 B5 B6"]),
    "Flink CEP's skipToLast": ("1 1 1 1 1 1 1", "AFTER MATCH SKIP TO LAST B PATTERN (A{2} B{2})", ["A1 A2 B3 B4", "A4 A5 B6 B7"]),
    "Esper's reluctant loop": (
        "1 1 1 3 1 3 3", "PATTERN (A*? B? C) DEFINE A AS v = 1, B AS v IN (1, 2), C AS v = 3", ["A1 A2 B3 C4", "B5 C6", "C7"]
    ),
    "Esper's up to two": ("99 100 100 101 102", "PATTERN (A{,2} B) DEFINE A AS v >= 100, B AS v >= 102", ["A3 A4 B5"]),
    "Esper's aggregates": (
        "0 1 0 5 3 1", "MEASURES max(B.v) AS x, 2 * min(B.v) AS y, FIRST(B.v) AS f, count(B.v) AS n PATTERN (A B* C)"
        " DEFINE A AS v = 0, B AS v <> 1, C AS v = 1", [(None, None, None, 0), (5, 6, 5, 2)],
    ),
    "Esper's W, the longest of each start": (
        "8 8 8 6 3 7 6 2 6 2 9", "MEASURES A.n AS a, LAST(E.n) AS e AFTER MATCH SKIP TO NEXT ROW PATTERN (A B+ C+ D+ E+)"
        f" DEFINE {FALL}, {RISE}, D AS v < PREV(v), E AS v > PREV(v)", [(3, 9), (4, 9), (6, 11), (7, 11)],
    ),
    "Calcite's running sum": ("5 4 6 5 5", "PATTERN (S B+) DEFINE B AS S.v + SUM(B.v + 1) + 1 <= 15", ["S1 B2", "S3 B4"]),
    "KQL's sum that begins anew": ("1 2 3 4 5", "MEASURES SUM(v) AS s PATTERN (A B*) DEFINE B AS SUM(v) - v < 10", [(10,), (5,)]),
}  # fmt: skip
KEYED = "100 100 100 100 100 100 101 101 101 200 201 202 202 202 999 999"
EITHER = "DEFINE X AS v < 200, Y AS v IN (100, 200), N AS v < 999"
RANGE = "MEASURES FIRST(n) AS s, LAST(n) AS e, count(*) AS c"
BIGQUERY: dict[str, Rows] = {
    "anchors in alternatives": (
        KEYED, f"{RANGE} PATTERN (^ Z* (^)+ X+ | Z+ $) DEFINE X AS v < 200, Z AS v > 199", [(1, 9, 9), (10, 16, 7)]
    ),
    "anchors of nothing": (KEYED, f"{RANGE} PATTERN (^^A*(^^){{100}}A*^^(^)?) DEFINE A AS FALSE", [(None, None, 0)]),
    "$ behind no row": (KEYED, f"{RANGE} PATTERN (A? $$$$) DEFINE A AS FALSE", []),
    "use_longest_match = FALSE": (KEYED, f"{RANGE} PATTERN (X+ | Y+ N+) {EITHER}", [(1, 9, 9), (10, 14, 5)]),
    "use_longest_match = FALSE, reluctant": (
        KEYED, f"{RANGE} PATTERN (X+? | Y+? N+?) {EITHER}", [*((n, n, 1) for n in range(1, 10)), (10, 11, 2)]
    ),
    "overlapping, reluctant": (
        KEYED, f"{RANGE} AFTER MATCH SKIP TO NEXT ROW PATTERN (X+? Z+?) DEFINE X AS v < 200, Z AS v > 199",
        [(n, 10, 11 - n) for n in range(1, 10)],
    ),
    "the number of the match in FIRST and LAST": (
        "1000 1001 1002 1003 1002", "MEASURES FIRST(1000 * A.v + 100 * MATCH_NUMBER()) AS f, LAST(1000 * B.v + 100 * MATCH_NUMBER()) AS l"
        " PATTERN (A* N* B*) DEFINE A AS n < 3, N AS FALSE, B AS n >= 3", [(1000100, 1002100)],
    ),
    "a constant in COUNT, beside the rows of a variable": (
        "1 " * 9 + "2 " * 7, "MEASURES COUNT(0) + MAX(A.v) AS m, LAST(A.n) AS a, LAST(N.v) AS n PATTERN (A* N* B*)"
        " DEFINE A AS v = 1, N AS FALSE, B AS v = 2", [(17, 9, None)],
    ),
}  # fmt: skip
AZURE_ROWS: dict[str, Rows] = {
    "the duration of a condition": (
        "2000 25000 26000 25000 26000 25000 26000 2000", "MEASURES FIRST(n) AS s, LAST(n) AS e PATTERN (F+) DEFINE F AS v > 20000", [(2, 7)]
    ),
}  # fmt: skip
CASES = FLINK | ESPER | SIDDHI | EQL | CLICKHOUSE_AND_KQL | AZURE | OPENCEP | TRINO | OTHERS | BIGQUERY | AZURE_ROWS


# The events of each user, a query, and how far they came.
LOOSE, ORDERED = "SEQ(A a, B b, C c, D d, E e)", "SEQ(A a, B b, C c)"
FUNNELS: dict[str, tuple[str, str, dict[str, Any], list[int]]] = {
    "Bloomreach's loose order": ("ABCDE ABFCDE ABCE ABCEDE", LOOSE, {}, [5, 5, 3, 5]),
    "strict_order of ClickHouse and Pinot": ("ABDC", ORDERED, STRICT, [2]),
    "any order": ("CBA CA", "AND(A a, B b, C c)", {}, [3, 2]),
}


def found_events(text: str, query: str, options: dict[str, Any]) -> list[str]:
    """Return the events of each match, in order."""
    names, types, values, keys, times = zip(*re.findall(r"((\w)(\d+))(?:/(\w))?(?:@(\d+))?", text), strict=True)
    ts = [int(time) if time else place for place, time in enumerate(times)]
    events = pa.table({"ts": ts, "type": types, "v": list(map(int, values)), "k": keys})
    matches = cep.match(events, query, output="indices", **options).to_pylist()
    bound = [[row for each in match.values() for row in (each if isinstance(each, list) else [each])] for match in matches]
    return sorted(" ".join(names[row] for row in sorted(row for row in rows if row is not None)) for rows in bound)


def found_rows(text: str, clauses: str) -> list[Any]:
    """Return what is measured of each match, or its rows behind their variables."""
    rows = pa.table({"n": range(1, len(text.split()) + 1), "v": list(map(int, text.split()))})
    if "MEASURES" in clauses:
        return [tuple(row.values()) for row in cep.match(rows, f"MATCH_RECOGNIZE (ORDER BY n {clauses})").to_pylist()]
    shown = f"MATCH_RECOGNIZE (ORDER BY n MEASURES MATCH_NUMBER() AS m, CLASSIFIER() AS c ALL ROWS PER MATCH {clauses})"
    words: dict[int, str] = {}
    for row in cep.match(rows, shown).to_pylist():
        words[row["m"]] = f"{words.get(row['m'], '')} {row['c']}{row['n']}".strip() if row["c"] else ""
    return list(words.values())


@pytest.mark.parametrize("name", CASES)
def test_the_answer_is_theirs(name: str) -> None:
    text, question, *options, matches = CASES[name]
    assert (found_events(text, question, *options) if options else found_rows(text, question)) == (sorted(matches) if options else matches)


@pytest.mark.parametrize("name", FUNNELS)
def test_users_come_as_far_as_they_say(name: str) -> None:
    paths, pattern, options, wanted = FUNNELS[name]
    steps = [(user, letter) for user, path in enumerate(paths.split()) for letter in path]
    events = pa.table({"ts": range(len(steps)), "user": [user for user, _ in steps], "type": [letter for _, letter in steps]})
    progress = cep.progress(events, f"PARTITION BY user PATTERN {pattern} WITHIN 99", **options)
    reached = progress.group_by("user").aggregate([("reached", "max")])
    assert reached.sort_by("user")["reached_max"].to_pylist() == wanted
