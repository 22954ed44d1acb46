"""MATCH_RECOGNIZE: what is written is read again, and every error has its place and says what was expected."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_cep as cep
from gpu_cep.errors import PatternError, PatternSyntaxError, UnsupportedError
from gpu_cep.lang import ast, grammar_tables
from gpu_cep.lang.ast import Binary, Expression, Literal, Or, PatternNode, Repeat, Seq, Variable, Window
from gpu_cep.lang.format import format_query
from gpu_cep.lang.grammar_tables import ROW_PATTERNS, build_parser, read_parser
from gpu_cep.lang.parser import parse
from gpu_cep.lang.row_patterns.ast import (
    Anchor,
    Classifier,
    Column,
    Definition,
    Empty,
    Exclusion,
    MatchNumber,
    Measure,
    Navigation,
    Permute,
    RowAggregate,
    RowPatternQuery,
    Skip,
    SortKey,
    Subset,
)
from gpu_cep.lang.row_patterns.expressions import ROW_AGGREGATES
from gpu_cep.lang.row_patterns.names import column_named, folded, spelling
from tests.lang.test_format import composed, values

texts = st.text(min_size=1, max_size=5) | st.sampled_from(["--", "*/", "a b", "define", '"', "{-"])
quoted = texts.map(lambda text: '"' + text.replace('"', '""') + '"')
words = st.sampled_from(
    ["A", "b2", "größe", "seq", "one", "LAST", "final", "next", "order", "when", "first", "permute", "classifier", "match"]
)
names = words | quoted
# SKIP TO FIRST v with a variable called first, and the like, are written with quotes
skipped = st.sampled_from(["A", "b2"]) | quoted
offsets = st.none() | st.integers(0, 10**20)
marks = st.sampled_from([None, "RUNNING", "FINAL"])

leaves: st.SearchStrategy[Expression] = st.one_of(
    st.builds(Literal, values),
    st.builds(Column, st.none() | names, names),
    st.builds(Classifier, st.none() | names),
    st.just(MatchNumber()),
    st.builds(RowAggregate, st.just("count"), st.none(), st.none() | names, marks),
)


def navigating(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    return st.one_of(
        composed(inner),
        st.builds(Navigation, st.sampled_from(["PREV", "NEXT"]), inner, offsets),
        st.builds(Navigation, st.sampled_from(["FIRST", "LAST"]), inner, offsets, marks),
        st.builds(RowAggregate, st.sampled_from(ROW_AGGREGATES), inner, st.none(), marks),
    )


expressions = st.recursive(leaves, navigating, max_leaves=6)
bounds = st.sampled_from([(1, None), (0, None), (0, 1), (3, 3), (2, None), (2, 4), (0, 5), (1, 1)])
primitives = st.builds(Variable, names) | st.just(Empty()) | st.builds(Anchor, st.sampled_from(["^", "$"]))


def repeated(element: PatternNode, bound: tuple[int, int | None], greedy: bool) -> Repeat:
    return Repeat(element, *bound, greedy or bound[0] == bound[1])


def combined(inner: st.SearchStrategy[PatternNode]) -> st.SearchStrategy[PatternNode]:
    several = st.lists(inner, min_size=2, max_size=3).map(tuple)
    return st.one_of(
        st.builds(Seq, several),
        st.builds(Or, several),
        st.builds(Permute, st.lists(inner, min_size=1, max_size=3).map(tuple)),
        st.builds(Exclusion, inner),
        st.builds(repeated, inner, bounds, st.booleans()),
    )


def tuples(part: st.SearchStrategy[Any], least: int = 0) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(part, min_size=least, max_size=2).map(tuple)


columns = st.builds(Column, st.none() | names, names)
skips = st.sampled_from([None, Skip("PAST LAST ROW"), Skip("NEXT ROW")]) | st.builds(Skip, st.sampled_from(["FIRST", "LAST"]), skipped)
queries = st.builds(
    RowPatternQuery,
    st.recursive(primitives, combined, max_leaves=6),
    tuples(columns),
    tuples(st.builds(SortKey, columns, st.booleans(), st.sampled_from([None, True, False]))),
    tuples(st.builds(Measure, expressions, names)),
    st.sampled_from(["one", "show empty", "omit empty", "with unmatched"]),
    skips,
    st.sampled_from([None, Window(5, "minutes"), Window(7, None), Window(3, "events")]),
    tuples(st.builds(Subset, names, tuples(names, 1))),
    tuples(st.builds(Definition, names, expressions)),
)


@given(queries)
def test_the_text_of_a_query_is_read_as_the_same_query(query):
    assert parse(format_query(query)) == query


def test_a_variable_called_permute_is_written_before_a_group():
    query = RowPatternQuery(Seq((Variable("permute"), Seq((A, B)))))
    assert parse(format_query(query)) == query


@given(st.sampled_from(["MATCH_RECOGNIZE (", "match_recognize(PATTERN (A", "MATCH_RECOGNIZE (ORDER BY "]), st.text(max_size=20))
def test_any_text_is_read_or_refused_at_a_place(start, rest):
    fault = None
    try:
        parse(start + rest)
    except (PatternSyntaxError, UnsupportedError) as error:
        fault = error
    assert fault is None or fault.diagnostics[0].span is not None


def read(clauses: str) -> RowPatternQuery:
    found = parse(f"MATCH_RECOGNIZE ({clauses})")
    assert isinstance(found, RowPatternQuery)
    return found


A, B, C = Variable("A"), Variable("B"), Variable("C")


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("A", A),
        ("((A))", A),
        ("A B|C", Or((Seq((A, B)), C))),
        ("A (B|C)", Seq((A, Or((B, C))))),
        ("A*", Repeat(A, 0, None)),
        ("A+?", Repeat(A, 1, None, greedy=False)),
        ("A??", Repeat(A, 0, 1, greedy=False)),
        ("A{3}", Repeat(A, 3, 3)),
        ("A{,3}?", Repeat(A, 0, 3, greedy=False)),
        ("A{,}", Repeat(A, 0, None)),
        ("(A B)+", Repeat(Seq((A, B)), 1, None)),
        ("(A+)*", Repeat(Repeat(A, 1, None), 0, None)),
        ("A{-B-}C", Seq((A, Exclusion(B), C))),
        ("A {- B C -}+", Seq((A, Repeat(Exclusion(Seq((B, C))), 1, None)))),
        ("^ () $", Seq((Anchor("^"), Empty(), Anchor("$")))),
        ("PERMUTE(A, B|C)", Permute((A, Or((B, C))))),
        ("permute A", Seq((Variable("permute"), A))),
    ],
)
def test_patterns(pattern, expected):
    assert read(f"PATTERN ({pattern})").pattern == expected


@pytest.mark.parametrize(
    ("clause", "expected"),
    [
        ("TO NEXT ROW", Skip("NEXT ROW")),
        ("PAST LAST ROW", Skip("PAST LAST ROW")),
        ("TO FIRST A", Skip("FIRST", "A")),
        ("TO LAST A", Skip("LAST", "A")),
        ("TO A", Skip("LAST", "A")),
        ('TO "first"', Skip("LAST", '"first"')),
    ],
)
def test_where_the_search_goes_on(clause, expected):
    assert read(f"AFTER MATCH SKIP {clause} PATTERN (A)").skip == expected


@pytest.mark.parametrize(
    ("clause", "rows"),
    [
        ("", "one"),
        ("ONE ROW PER MATCH", "one"),
        ("ALL ROWS PER MATCH", "show empty"),
        ("ALL ROWS PER MATCH SHOW EMPTY MATCHES", "show empty"),
        ("ALL ROWS PER MATCH OMIT EMPTY MATCHES", "omit empty"),
        ("ALL ROWS PER MATCH WITH UNMATCHED ROWS", "with unmatched"),
    ],
)
def test_rows_per_match(clause, rows):
    assert read(f"{clause} PATTERN (A)").rows == rows


def test_words_of_clauses_are_names_where_names_stand():
    clauses = "PARTITION BY one ORDER BY match DESC NULLS FIRST MEASURES final AS measures, running AS row"
    found = read(f"{clauses} PATTERN (after skip order one desc measures all+ end) DEFINE all AS to > 1")
    assert found.partition_by == (Column(None, "one"),)
    assert found.order_by == (SortKey(Column(None, "match"), descending=True, nulls_first=True),)
    assert [each.name for each in found.measures] == ["measures", "row"]
    assert found.definitions == (Definition("all", Binary(">", Column(None, "to"), Literal(1))),)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("prev(A.x)", Navigation("PREV", Column("A", "x"))),
        ("match_sequence_number()", RowAggregate("count", None)),
        ("Lag(x, 2)", Navigation("PREV", Column(None, "x"), 2)),
        ("lead(A.x)", Navigation("NEXT", Column("A", "x"))),
        ("FINAL LAST(x, 2)", Navigation("LAST", Column(None, "x"), 2, "FINAL")),
        ("PREV(RUNNING FIRST(A.x), 3)", Navigation("PREV", Navigation("FIRST", Column("A", "x"), None, "RUNNING"), 3)),
        ("count(*)", RowAggregate("count", None)),
        ("FINAL count(A.*)", RowAggregate("count", None, "A", "FINAL")),
        ("count(DISTINCT x)", RowAggregate("count_distinct", Column(None, "x"))),
        ("count(DISTINCT -x)", RowAggregate("count_distinct", ast.Unary("-", Column(None, "x")))),
        ("count(distinct)", RowAggregate("count", Column(None, "distinct"))),
        ("sum(A.x * 2)", RowAggregate("sum", Binary("*", Column("A", "x"), Literal(2)))),
        ("CLASSIFIER(U)", Classifier("U")),
        ("match_number()", MatchNumber()),
        ('"last"(x)', ast.Call("last", (Column(None, "x"),))),
    ],
)
def test_expressions(expression, expected):
    (measure,) = read(f"MEASURES {expression} AS m PATTERN (A)").measures
    assert measure.expression == expected


@pytest.mark.parametrize(
    ("clauses", "column", "message", "hint"),
    [
        ("PATTERN (A B) ORDER BY x", 32, "ORDER BY must stand before PATTERN", None),
        ("PATTERN (A) PATTERN (B)", 30, "a second PATTERN", None),
        ("MEASUERS x AS x PATTERN (A)", 18, "expected PARTITION BY, ORDER BY, MEASURES", "did you mean 'MEASURES'?"),
        ("MEASURES A.x PATTERN (A)", 31, "expected an operator, AND, OR or AS", "named with AS"),
        ("PATTERN (A) DEFINE A AS x > ", 46, "expected an expression", None),
        ("PATTERN (A, B)", 28, "found ','", "one after the other: PATTERN (A B+)"),
        ("PATTERN A B", 26, "found 'A', expected '('", "one after the other: PATTERN (A B+)"),
        ("PATTERN (A) WITHIN INTERVAL 5 MINUTE", 37, "found", "a length of time is 5 minutes, or INTERVAL '5' MINUTE"),
        ("PATTERN (A) DEFINE A AS y < x + INTERVAL '5 minutes'", 70, "expected a unit", "INTERVAL '5' MINUTE"),
        ("PATTERN ()", 27, "found ')', expected a name", None),
        ("MEASURES FINAL A.x AS m PATTERN (A)", 33, "found 'A'", "FINAL and RUNNING stand before FIRST, LAST and aggregates"),
        ("PATTERN (A{0})", 28, "at least one row", None),
        ("PATTERN (A{,0})", 28, "at least one row", None),
        ("PATTERN (A{3,2})", 28, "maximum 2 is below its minimum 3", None),
        ("ONE ROWS PER MATCH PATTERN (A)", 22, "found 'ROWS', expected ROW", None),
        ("ALL ROWS PER MATCH SHOW PATTERN (A)", 42, "expected EMPTY", None),
        ("AFTER MATCH SKIP A PATTERN (A)", 35, "expected PAST or TO", None),
        ("PATTERN (A) WHERE x > 1", 30, "found 'WHERE'", "conditions on rows stand in DEFINE"),
        ("PATTERN (A) RETURN x", 30, "found 'RETURN'", "MEASURES A.x AS x"),
        ("PATTERN (SEQ(A, B))", 32, "found ','", "one after the other: PATTERN (A B+)"),
        ("PATTERN (A) SUBSET U > (A)", 39, "expected =", "SUBSET U = (A, B)"),
        ("MEASURES prev(x, -1) AS m PATTERN (A)", 35, "the offset of PREV", None),
        ("MEASURES prev(x, y) AS m PATTERN (A)", 35, "the offset of PREV", None),
        ("MEASURES lag(x, 1, 0) AS m PATTERN (A)", 27, "LAG takes an expression and an offset", "coalesce(LAG(A.x, 1), 0)"),
        ("MEASURES prev() AS m PATTERN (A)", 27, "PREV takes an expression and an offset", None),
        ("MEASURES count() AS m PATTERN (A)", 27, "count takes one expression", "count(*)"),
        ("MEASURES min(x, y) AS m PATTERN (A)", 27, "min takes one expression", "least(…)"),
        ("MEASURES sum(*) AS m PATTERN (A)", 27, "sum does not take *", "count(*)"),
        ("MEASURES FINAL prev(x) AS m PATTERN (A)", 27, "FINAL stands before FIRST, LAST and aggregates", "PREV(FINAL LAST(A.x))"),
        ("MEASURES RUNNING abs(x) AS m PATTERN (A)", 27, "RUNNING stands before", None),
        ("MEASURES RUNNING next(x) AS m PATTERN (A)", 27, "RUNNING stands before FIRST, LAST and aggregates only", None),
        ("MEASURES match_number(x) AS m PATTERN (A)", 27, "MATCH_NUMBER takes nothing", None),
        ("MEASURES classifier(A.x) AS m PATTERN (A)", 27, "CLASSIFIER takes a variable or nothing", None),
        ("ORDER BY ts ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING PATTERN (A)", 30, "found 'ROWS'", "frames are for row patterns in windows"),
        ("MEASURES define AS m PATTERN (A)", 27, "found 'define'", 'the name of a column or a variable: "define"'),
        ("PATTERN (A Within+)", 29, "found 'Within'", '"Within"'),
        ("PATTERN (A) DEFINE A AS AND x > 1", 42, "found 'AND'", None),
        ("MEASURES CAST(A.x AS double) AS m PATTERN (A)", 36, "found 'AS'", "cast the column in a relation before"),
        ("MEASURES try_cast(LAST(x) AS int) AS m PATTERN (A)", 44, "found 'AS'", "there are no casts"),
        ("PATTERN (A) DEFINE A AS extract(year FROM ts) = 1", 55, "found 'FROM'", "year(ts)"),
        ("MEASURES trim(BOTH 'x' FROM y) AS m PATTERN (A)", 37, 'found "\'x\'"', "trim(x)"),
        ("MEASURES sum(x) FILTER (WHERE x > 2) AS m PATTERN (A)", 34, "found 'FILTER'", "sum(CASE WHEN"),
        ("MEASURES LAST(x) IGNORE NULLS AS m PATTERN (A)", 35, "found 'IGNORE'", "pass over NULL"),
        ("MEASURES LAST(x IGNORE NULLS) AS m PATTERN (A)", 34, "found 'IGNORE'", "pass over NULL"),
        ("MEASURES sum(x) OVER () AS m PATTERN (A)", 34, "found 'OVER'", "rows of the match"),
        ("MEASURES x || 'b' AS m PATTERN (A)", 29, "found '|'", "texts are not joined here"),
        ("PATTERN (A) DEFINE A AS x IS DISTINCT FROM 3", 47, "found 'DISTINCT'", "(x IS NULL) <> (y IS NULL)"),
        ("PATTERN (A) DEFINE A AS x IS NOT DISTINCT FROM 3", 51, "found 'DISTINCT'", "x = y OR x IS NULL AND y IS NULL"),
        *(
            (f"PATTERN (A) DEFINE A AS s {written}", 44 + 4 * written.startswith("NOT"), "found", instead)
            for written, instead in {
                "STARTS WITH 'x'": "write s LIKE 'x%'",
                "ends_with 'x'": "write s LIKE '%x'",
                "CONTAINS 'x'": "write s LIKE '%x%'",
                "NOT RLIKE 'x'": "write NOT regexp_like(s, 'x')",
                "SIMILAR TO 'x'": "write regexp_like(s, 'pattern')",
                "ILIKE 'x'": "write lower(s) LIKE 'x'",
            }.items()
        ),
        ("MEASURES ts AT TIME ZONE 'UTC' AS m PATTERN (A)", 30, "found 'AT'", "convert the column"),
        ("PATTERN (A) DEFINE A AS x > y OPTIONS (use_longest_match = TRUE)", 48, "found 'OPTIONS'", "write longer alternatives first"),
        ("PATTERN (A) DEFINE A AS x > 1 OPTIONS (use_longest_match = TRUE)", 56, "found '('", "write longer alternatives first"),
        ("LIMIT DURATION (minute, 1) PATTERN (A)", 18, "found 'LIMIT'", "WITHIN 1 MINUTE"),
        ("PATTERN (A .* B)", 29, "found '.'", "PATTERN (A X* B)"),
        ("PATTERN (A | )", 31, "found ')'", "PATTERN (A | ())"),
        ("PARTITION BY (k) PATTERN (A)", 31, "found '('", "leave the brackets out: PARTITION BY k"),
        ("PARTITION BY k, ( n, m ) PATTERN (A)", 34, "found '('", "leave the brackets out: PARTITION BY n, m"),
        ('ORDER BY ("t s" DESC, n) PATTERN (A)', 27, "found '('", 'leave the brackets out: ORDER BY "t s" DESC, n'),
        ("ORDER BY (k + 1) PATTERN (A)", 27, "found '('", "rows are ordered by columns: compute them"),
        ("PARTITION BY k, (upper(k)) PATTERN (A)", 34, "found '('", "keys are columns: compute them"),
        ("PARTITION BY upper(k) PATTERN (A)", 36, "found '('", "keys are columns"),
        ("ORDER BY abs(x) PATTERN (A)", 30, "found '('", "rows are ordered by columns"),
    ],
)  # fmt: skip
def test_syntax_errors(clauses, column, message, hint):
    text = f"MATCH_RECOGNIZE ({clauses})"
    with pytest.raises(PatternSyntaxError) as error:
        parse(text)
    (fault,) = error.value.diagnostics
    assert message in fault.message
    assert fault.span is not None
    assert fault.span.column == column
    assert hint is None or hint in (fault.hint or "")
    assert "^" in str(error.value)


@pytest.mark.parametrize("word", ["SEEK", "INITIAL"])
def test_what_is_for_windows_is_refused_by_name(word):
    with pytest.raises(UnsupportedError, match=f"{word} is not supported"):
        parse(f"MATCH_RECOGNIZE (AFTER MATCH SKIP PAST LAST ROW {word} PATTERN (A))")


@pytest.mark.parametrize(
    "clauses",
    [
        "MEASURES (SELECT max(y) FROM t) AS m PATTERN (A)", "PATTERN (A) DEFINE A AS EXISTS (select * FROM t WHERE t.x = 1)",
        "PATTERN (A) DEFINE A AS x IN (SELECT y FROM t)",
    ],
)  # fmt: skip
def test_subqueries_are_refused_by_name(clauses):
    text = f"MATCH_RECOGNIZE ({clauses})"
    with pytest.raises(UnsupportedError, match="a subquery in MEASURES or DEFINE is not supported") as error:
        parse(text)
    (fault,) = error.value.diagnostics
    assert text[fault.span.column - 1 :].lower().startswith("select")
    assert fault.hint == "compute the value in the relation before MATCH_RECOGNIZE, as a column"


def test_a_column_may_be_called_select():
    parse("MATCH_RECOGNIZE (PARTITION BY k PATTERN (A) DEFINE A AS (select) > 1)")


@pytest.mark.parametrize("text", ["MATCH_RECOGNIZE (PATTERN (A B", "MATCH_RECOGNIZE (PATTERN (A B DEFINE A AS x > 1)"])
def test_what_is_open_is_named(text):
    with pytest.raises(PatternSyntaxError, match=r"'\(' in line 1, column 26 is not closed"):
        parse(text)


def test_comments_may_stand_before_the_clause():
    assert cep.parse("/* v */ -- w\n match_recognize (PATTERN (A));") == read("PATTERN (A)")


def test_an_infinite_number_has_no_text():
    with pytest.raises(PatternError, match="inf cannot be written"):
        format_query(RowPatternQuery(A, measures=(Measure(Literal(float("inf")), "m"),)))


def test_names_fold_unless_they_are_quoted():
    assert folded("up") == folded("UP") == folded('"UP"') != folded('"up"')
    assert spelling('"a""b"') == 'a"b'
    assert column_named("price", ["ts", "Price"]) == "Price"
    assert column_named("price", ["PRICE", "Price"]) is None
    assert column_named("price", ["PRICE", "price"]) == "price"
    assert column_named('"price"', ["Price"]) is None


def test_the_tables_are_of_the_grammar_at_hand(monkeypatch):
    text = "MATCH_RECOGNIZE (ORDER BY ts MEASURES FINAL LAST(A.x) AS x PATTERN (A B+? {- C -}) DEFINE B AS x > PREV(x) OR x IN (1, 2))"
    built = build_parser(ROW_PATTERNS)
    monkeypatch.setattr(grammar_tables, "build_parser", lambda language: pytest.fail("the tables are of another grammar: make pages"))
    assert read_parser(language=ROW_PATTERNS).parse(text) == built.parse(text)
