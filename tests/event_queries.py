"""Texts of queries over events, parsed."""

from __future__ import annotations

from gpu_cep.lang.ast import Query
from gpu_cep.lang.parser import parse


def event_query(text: str) -> Query:
    """Return the query that `text` is; it must be one over events."""
    query = parse(text)
    assert isinstance(query, Query), text
    return query
