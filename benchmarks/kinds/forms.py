"""The forms in which a kind of question is asked: the form that users begin with, and others that differ from it in one thing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

import gpu_cep
from benchmarks.kinds.events import KEY, in_chunks, integer_keys, plain_types, through_parquet
from benchmarks.kinds.questions import Kind
from gpu_cep.choices import TableOutput


@dataclass(frozen=True, slots=True)
class Form:
    """How a question is asked, and of which of the `TABLES`; `words` say how it differs, `suits` for which kinds it does."""

    words: str
    table: str = "parquet"
    output: TableOutput = "indices"
    key_in_text: bool = True
    items: bool = False
    threads: int = 1
    suits: Callable[[Kind], bool] = lambda kind: True

    def answer(self, kind: Kind, events: pa.Table, profile: gpu_cep.Profile | None = None) -> pa.Table:
        """Return the library's answer; `events` are the form's table."""
        text = kind.text(len(events), key=self.key_in_text, items=self.items)
        key = None if self.key_in_text else KEY
        return gpu_cep.match(events, text, partition_by=key, output=self.output, threads=self.threads, profile=profile, **kind.options)

    def count(self, answer: pa.Table) -> int:
        """Return how many matches an answer has."""
        return sum(answer["count"].to_pylist()) if self.output == "count" else len(answer)


# The tables that forms ask, by what makes them of the events in one chunk.
TABLES: dict[str, Callable[[pa.Table], pa.Table]] = {
    "parquet": through_parquet,
    "whole": lambda events: events,
    "short chunks": in_chunks,
    "plain types": lambda events: through_parquet(plain_types(events)),
    "integer keys": lambda events: through_parquet(integer_keys(events)),
}


def _is_keyed(kind: Kind) -> bool:
    return kind.keyed


def _has_types(kind: Kind) -> bool:
    return bool(kind.labels)


BASE, TWO_THREADS, PLAIN_TYPES, WHOLE_EVENTS = "base", "two threads", "plain types", "whole events"
FORMS = {
    BASE: Form("chunks and dictionaries as Parquet gives them, the key in the text, row numbers, one thread"),
    TWO_THREADS: Form("two threads, where the loop has one", threads=2),
    "one chunk": Form("one chunk with one dictionary", "whole"),
    "short chunks": Form("chunks of 10,000 rows, each with dictionaries of its own texts", "short chunks"),
    "keyword": Form("`partition_by=` instead of the key in the text", key_in_text=False, suits=_is_keyed),
    "integer keys": Form("keys as numbers instead of text", "integer keys", suits=_is_keyed),
    PLAIN_TYPES: Form("types as text without a dictionary, for the loop, too", "plain types", suits=_has_types),
    "count": Form("the number of matches instead of row numbers", output="count"),
    "RETURN": Form("some values of each match instead of row numbers", output="matches", items=True),
    WHOLE_EVENTS: Form("all columns of all events of each match instead of row numbers", output="matches"),
}


def forms_of(kind: Kind) -> dict[str, Form]:
    """Return the forms that suit `kind`, by name."""
    return {name: form for name, form in FORMS.items() if form.suits(kind)}
