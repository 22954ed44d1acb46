"""Predicates on text, whatever Arrow's layout of the column."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest

import gpu_cep as cep

TEXTS = ["abc", "ab", "", None, "a%c", "A_c", "abc\n", "äbc", "abc"]


def with_null_in_dictionary(texts):
    distinct = [*dict.fromkeys(text for text in texts if text is not None), None]
    return pa.DictionaryArray.from_arrays([distinct.index(text) for text in texts], pa.array(distinct, pa.string()))


def chunked(texts):
    return pa.chunked_array([pa.array(texts[:2]), pa.array([], pa.string()), pa.array(texts[2:])])


def chunked_dictionaries(texts):
    return pa.chunked_array([pa.array(texts[:4]).dictionary_encode(), pa.array(texts[4:]).dictionary_encode()])


LAYOUTS = {
    "string": pa.array,
    "large_string": lambda texts: pa.array(texts, pa.large_string()),
    "string_view": lambda texts: pa.array(texts, pa.string_view()),
    "dictionary": lambda texts: pa.array(texts).dictionary_encode(),
    "narrow dictionary": lambda texts: pa.array(texts, pa.dictionary(pa.int8(), pa.string())),
    "NULL in the dictionary": with_null_in_dictionary,
    "sliced": lambda texts: pa.array(["x", None, *texts, "y"]).slice(2, len(texts)),
    "sliced dictionary": lambda texts: pa.array(["x", None, *texts, "y"]).dictionary_encode().slice(2, len(texts)),
    "chunked": chunked,
    "chunked dictionaries": chunked_dictionaries,
}

PREDICATES = {
    "a.s = 'abc'": [0, 8],
    "a.s <> 'abc'": [1, 2, 4, 5, 6, 7],
    "NOT a.s = 'abc'": [1, 2, 4, 5, 6, 7],
    "a.s > 'ab'": [0, 6, 7, 8],
    "'ab' >= a.s": [1, 2, 4, 5],
    "a.s BETWEEN 'ab' AND 'abc'": [0, 1, 8],
    "a.s IN ('abc', '')": [0, 2, 8],
    "a.s IN ('abc', NULL)": [0, 8],
    "a.s NOT IN ('abc', '')": [1, 4, 5, 6, 7],
    "a.s NOT IN ('abc', NULL)": [],
    "a.s LIKE 'ab%'": [0, 1, 6, 8],
    "a.s LIKE '_bc'": [0, 7, 8],
    "a.s LIKE 'a%c'": [0, 4, 8],
    "a.s NOT LIKE '%c%'": [1, 2],
    "a.s LIKE ''": [2],
    "a.s IS NULL": [3],
    "a.s IS NOT NULL": [0, 1, 2, 4, 5, 6, 7, 8],
    "a.s = NULL": [],
    "count(a.s) = 1": [0, 1, 2, 4, 5, 6, 7, 8],
    "CASE WHEN a.s LIKE 'ab%' THEN 1 WHEN a.s IS NULL THEN 2 END > 0": [0, 1, 3, 6, 8],
    "CASE a.s WHEN 'abc' THEN 'ab' ELSE a.s END = 'ab'": [0, 1, 8],
    "(a.s = 'abc' OR a.s IS NULL) AND a.s <> 'x'": [0, 8],
    "(a.s = 'abc' OR a.s IS NULL) AND (a.s <> 'x' OR a.s IS NULL)": [0, 3, 8],
    "coalesce(a.s = 'abc', TRUE) AND NOT nullif(a.s = 'ab', FALSE)": [],
    "coalesce(a.s = 'abc', TRUE)": [0, 3, 8],
    "nullif(a.s < 'abc', a.s = 'ab')": [2, 4, 5],
    "greatest(a.s = 'abc', a.s = 'ab', FALSE)": [0, 1, 8],
    "length(a.s) = 3": [0, 4, 5, 7, 8],
    "upper(a.s) = 'ABC'": [0, 8],
    "lower(a.s) LIKE 'a_c'": [0, 4, 5, 8],
    "substring(a.s, 2, 1) = 'b'": [0, 1, 6, 7, 8],
    "regexp_like(a.s, '^ab|BC')": [row for row, text in enumerate(TEXTS) if text is not None and re.search("^ab|BC", text)],
    "NOT regexp_like(a.s, '(?i)b')": [row for row, text in enumerate(TEXTS) if text is not None and "b" not in text.lower()],
    "trim(a.s) = 'abc'": [0, 8],
    "a.s = a.s": [0, 1, 2, 4, 5, 6, 7, 8],
    "a.s = a.other": [1],
    "a.s < a.other OR a.x = 3": [2, 3, 4, 5],
}
OTHER = pa.array(["abb", "ab", "a", "b", "b", "b", None, "a", ""])


def rows(layout, pattern, **options):
    events = pa.table({"ts": range(9), "s": LAYOUTS[layout](TEXTS), "other": OTHER, "x": range(9)})
    return cep.match(events, pattern, output="indices", **options).to_pylist()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_properties(layout):
    found = {condition: [row["a"] for row in rows(layout, f"PATTERN a WHERE {condition}")] for condition in PREDICATES}
    assert found == PREDICATES


@pytest.mark.parametrize("layout", LAYOUTS)
def test_comparisons_of_two_events(layout):
    wanted = [(e, f) for e in range(9) for f in range(e + 1, 9) if None not in (TEXTS[e], TEXTS[f]) and TEXTS[e] > TEXTS[f]]
    options = {"strategy": "skip_till_any_match"}
    assert [(row["a"], row["b"]) for row in rows(layout, "PATTERN SEQ(a, b) WHERE a.s > b.s", **options)] == wanted
    across = [(e, f) for e in range(9) for f in range(e + 1, 9) if TEXTS[e] is not None and TEXTS[e] == OTHER[f].as_py()]
    assert [(row["a"], row["b"]) for row in rows(layout, "PATTERN SEQ(a, b) WHERE a.s = b.other", **options)] == across


@pytest.mark.parametrize("layout", LAYOUTS)
def test_text_keys(layout):
    assert rows(layout, "PATTERN SEQ(a, b)", partition_by="s") == [{"a": 0, "b": 8}]
    assert rows(layout, "PATTERN SEQ(a, b) WHERE a.s = b.s") == [{"a": 0, "b": 8}]
    events = pa.table({"ts": range(9), "s": LAYOUTS[layout](TEXTS)})
    keys = cep.match(events, "PATTERN a", partition_by="s", output="count")["s"].to_pylist()
    assert keys == [None, *sorted({text for text in TEXTS if text is not None}, key=str.encode)]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_texts_leave_in_the_type_they_came_in(layout):
    column = LAYOUTS[layout](TEXTS)
    found = cep.match(pa.table({"ts": range(9), "s": column}), "PATTERN a RETURN a.s")
    assert found["s"].to_pylist() == TEXTS
    assert found.schema.field("s").type == (pa.large_string() if layout == "string_view" else column.type)


def test_a_dictionary_that_repeats_a_value_is_one_key_and_keeps_its_type():
    keys = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2], pa.int8()), pa.array(["a", "a", "b"]))
    events = pa.table({"ts": [1, 2, 3], "type": ["A", "B", "A"], "c": keys})
    found = cep.match(events, "PATTERN SEQ(a, b)", partition_by="c")
    assert found["c"].type == keys.type
    assert found["c"].to_pylist() == ["a"]
    assert cep.match(events, "PATTERN SEQ(a, b)", partition_by="c", output="count").to_pylist() == [{"c": "a", "count": 1}]


@pytest.mark.parametrize("values", [1, 2, 30, 31, 32, 62, 63, 64, 200])
@pytest.mark.parametrize("variables", [1, 2, 9])
def test_dictionaries_of_every_size_label_alike(values, variables):
    """Tables of labels, one for each value and NULL, that fit one number of 64 bits and those that do not."""
    codes = [*range(values), None] * 2
    types = pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), pa.array([f"t{code}" for code in range(values)]))
    wanted = [-v % values for v in range(variables)]
    pattern = ", ".join(f"t{code} v{v}" for v, code in enumerate(wanted))
    query = f"PATTERN AND({pattern})" if variables > 1 else f"PATTERN {pattern}"
    events = pa.table({"ts": range(len(codes)), "type": types})
    profile = cep.Profile()
    cep.match(events, query, output="count", profile=profile, max_steps=100_000)
    assert profile.counts["filtered"] == 2 * len(set(wanted))
