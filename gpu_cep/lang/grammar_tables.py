"""Read the parsers from files of their tables, since to build one from its grammar takes a fifth of a second.

``python -m gpu_cep.lang.grammar_tables`` writes the files, after each change of
a grammar and with each new version of lark.
"""

from __future__ import annotations

import hashlib
import io
import json
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lark
from lark import Lark

TABLES = Path(__file__).with_name("grammar_tables.json")


@dataclass(frozen=True, slots=True)
class Language:
    """A language: the files whose texts together are its grammar, the rule of a whole query, and the file of its tables."""

    grammars: tuple[str, ...]
    start: str
    tables: Path

    @property
    def grammar(self) -> str:
        """Return the text of the whole grammar."""
        return "\n".join(Path(__file__).with_name(name).read_text("utf-8") for name in self.grammars)


EVENTS = Language(("grammar.lark",), "start", TABLES)
# Behind the grammar of event patterns, whose expressions it shares.
ROW_PATTERNS = Language(("grammar.lark", "row_patterns.lark"), "row_query", TABLES.with_name("row_pattern_tables.json"))


def read_parser(tables: Path | None = None, language: Language = EVENTS) -> Lark:
    """Return the parser of a language: from its tables if they are of this grammar and of this version of lark, otherwise built.

    `tables`: the file of tables, if it is not the language's own.
    """
    stored = _numbered(json.loads((tables or language.tables).read_text("utf-8")))
    if stored.pop("key") != _key(language):
        return build_parser(language)
    return Lark.load(io.BytesIO(pickle.dumps(stored)))


def build_parser(language: Language = EVENTS) -> Lark:
    """Return the parser of a language, built from its grammar."""
    return Lark(
        language.grammar, start=language.start, parser="lalr", lexer="contextual", propagate_positions=True, maybe_placeholders=True
    )


def describe_tables(language: Language = EVENTS) -> str:
    """Return the text of a language's file of tables."""
    saved = io.BytesIO()
    build_parser(language).save(saved)
    return json.dumps({"key": _key(language), **pickle.loads(saved.getvalue())}, sort_keys=True, separators=(",", ":"))


def _key(language: Language) -> str:
    """Return the digest of all that the tables of a language are made of."""
    return hashlib.sha256(f"{lark.__version__} {language.grammar}".encode()).hexdigest()


def _numbered(value: Any) -> Any:
    """Return a value of JSON with the numbers that lark has for keys, which JSON has as text."""
    if isinstance(value, list):
        return [_numbered(each) for each in value]
    if isinstance(value, dict):
        return {int(key) if key.isdigit() else key: _numbered(each) for key, each in value.items()}
    return value


if __name__ == "__main__":
    for each in (EVENTS, ROW_PATTERNS):
        each.tables.write_text(describe_tables(each), "utf-8")
