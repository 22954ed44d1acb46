"""Read the parser from a file of its tables, since to build it from the grammar takes a fifth of a second.

``python -m gpu_cep.lang.grammar_tables`` writes the file, after each change of
the grammar and with each new version of lark.
"""

from __future__ import annotations

import hashlib
import io
import json
import pickle
from pathlib import Path
from typing import Any

import lark
from lark import Lark

GRAMMAR = Path(__file__).with_name("grammar.lark")
TABLES = Path(__file__).with_name("grammar_tables.json")


def read_parser(tables: Path = TABLES) -> Lark:
    """Return the parser of queries: from `tables` if they are of this grammar and of this version of lark, otherwise built."""
    stored = _numbered(json.loads(tables.read_text("utf-8")))
    if stored.pop("key") != _key():
        return build_parser()
    return Lark.load(io.BytesIO(pickle.dumps(stored)))


def build_parser() -> Lark:
    """Return the parser of queries, built from the grammar."""
    return Lark(GRAMMAR.read_text("utf-8"), parser="lalr", lexer="contextual", propagate_positions=True, maybe_placeholders=True)


def describe_tables() -> str:
    """Return the text of the file of tables."""
    saved = io.BytesIO()
    build_parser().save(saved)
    return json.dumps({"key": _key(), **pickle.loads(saved.getvalue())}, sort_keys=True, separators=(",", ":"))


def _key() -> str:
    """Return the digest of all that the tables are made of."""
    return hashlib.sha256(f"{lark.__version__} {GRAMMAR.read_text('utf-8')}".encode()).hexdigest()


def _numbered(value: Any) -> Any:
    """Return a value of JSON with the numbers that lark has for keys, which JSON has as text."""
    if isinstance(value, list):
        return [_numbered(each) for each in value]
    if isinstance(value, dict):
        return {int(key) if key.isdigit() else key: _numbered(each) for key, each in value.items()}
    return value


if __name__ == "__main__":
    TABLES.write_text(describe_tables(), "utf-8")
