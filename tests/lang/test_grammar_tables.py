"""The file of parsing tables: it is of the grammar at hand, and a parser read from it reads what a built one reads."""

from __future__ import annotations

import json

import pytest
from lark import Token

from gpu_cep.lang import grammar_tables
from gpu_cep.lang.grammar_tables import TABLES, build_parser, read_parser

QUERIES = [
    "FROM events PARTITION BY k, m PATTERN SEQ(A a, NOT(B n), OR(C c+, AND(D d{2,3}, E e?))) WHERE a.x + 1 <= d[i].x AND c.y IN (1, 'z')"
    " WITHIN 3 HOURS RETURN a.x AS x, count(c) AS n",
    "DEFINE hot AS t > 60 AT LEAST 2 MINUTES, cold AS NOT t > 20 PATTERN hot meets cold;hot before cold AND hot overlaps cold WITHIN 1 DAY",
]


@pytest.fixture(scope="module")
def built():
    return build_parser()


@pytest.fixture
def no_building(monkeypatch):
    monkeypatch.setattr(grammar_tables, "build_parser", lambda language: pytest.fail("the tables are of another grammar: make pages"))


def _described(rule):
    return str(rule.origin.name), [str(each.name) for each in rule.expansion], str(rule.alias), rule.options.expand1


def _tokens(tree):
    return [(each, each.type, each.line, each.column) for each in tree.scan_values(lambda value: isinstance(value, Token))]


@pytest.mark.parametrize("query", QUERIES)
def test_a_parser_read_from_the_file_reads_as_a_built_one(query, built, no_building):
    tree, expected = read_parser().parse(query), built.parse(query)
    assert tree == expected
    assert _tokens(tree) == _tokens(expected)


def test_the_file_knows_all_rules_and_terminals_of_the_grammar(built, no_building):
    read = read_parser()
    assert sorted(map(_described, read.rules)) == sorted(map(_described, built.rules))
    assert sorted(each.name for each in read.terminals) == sorted(each.name for each in built.terminals)


def test_tables_of_another_grammar_or_version_of_lark_are_not_used(tmp_path, monkeypatch):
    other = tmp_path / "tables.json"
    other.write_text(json.dumps(json.loads(TABLES.read_text("utf-8")) | {"key": "another"}))
    monkeypatch.setattr(grammar_tables, "build_parser", lambda language: "built")
    assert read_parser(other) == "built"


def test_what_is_written_is_what_is_read(tmp_path, no_building):
    written = tmp_path / "tables.json"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grammar_tables, "build_parser", build_parser)
        written.write_text(grammar_tables.describe_tables())
    assert read_parser(written).parse(QUERIES[0]) == read_parser().parse(QUERIES[0])
