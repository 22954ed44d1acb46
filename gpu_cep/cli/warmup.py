"""Compile kernels ahead of queries: for the CPU by running small queries of every kind, for a card from a list."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from gpu_cep.cli.outcome import USAGE_FAULT, fail
from gpu_cep.cli.side_by_side import run_side_by_side
from gpu_cep.errors import CepError, EngineUnavailable
from gpu_cep.lang.ast import STRATEGIES
from gpu_cep.plan.settings import AFTER_MATCH, OUTPUTS
from gpu_cep_kernels.compile.ahead import Capability, card_capability, compile_form, forms, known_capabilities, note_done
from gpu_cep_kernels.compile.forms import Form
from gpu_cep_kernels.compile.kernel_cache import CUDA_SUFFIX, SUFFIX, cache_folder, writable_folder
from gpu_cep_kernels.compile.launch import available_threads
from gpu_cep_kernels.compile.notices import QUIET, say

# So many that the planner weighs the algorithms by what it samples, as it does for the events of users.
_EVENTS = 20_000
_KILLED = "the system ended the process that compiled this; is there too little memory?"

_TREND = "PATTERN SEQ(A a, B b+, C c) WHERE b[i].price > b[i-1].price AND c.price < a.price WITHIN 300"
_CHAIN = "PATTERN SEQ(A a, B b, C c) WHERE b.price > a.price + 50 AND c.volume = b.volume WITHIN 300"
_PAIR = "PATTERN SEQ(A a, B b) WHERE a.price < b.price WITHIN 100"
_QUERIES = (
    _TREND,
    _CHAIN,
    _PAIR,
    "PATTERN SEQ(AND(A a, B b), C c) WHERE a.price < c.price WITHIN 100",
    "PATTERN SEQ(A a, B b{1,3}, C c) WHERE avg(b.price) < c.price AND sum(b.volume) > 2 WITHIN 100",
    "PATTERN SEQ(A a, NOT(B n), C c) WHERE n.price > a.price WITHIN 100",
    "PATTERN SEQ(NOT(B m), A a, C c, NOT(B n)) WITHIN 50",
    "PATTERN SEQ(A a, OR(B b, C c), D d) WHERE d.price > a.price WITHIN 100",
    "PATTERN SEQ(A a, B b+, D d) WHERE prev(b.volume) < b.volume AND a.volume <> d.volume WITHIN 100",
)
_ROWS_OUT = (
    "PATTERN SEQ(A a, B b+, C c) WHERE b[i].price > b[i-1].price WITHIN 100"
    " RETURN count(b) AS n, avg(b.price) AS mean, min(b.volume) AS low, max(b.price) AS high, sum(b.volume) AS total, first(b.price) AS f,"
    " c.price - a.price AS rise, b.price AS prices"
)
_PROPERTIES = (
    "PATTERN SEQ(x, y) WHERE x.name LIKE 'n1%' AND y.name IN ('n2', 'n3') AND x.price BETWEEN 10 AND 20 AND y.volume > 3 WITHIN 100",
    "PATTERN SEQ(x, y) WHERE x.name = y.name AND x.price * 2 < y.price AND (x.volume = 1 OR x.price > 90) WITHIN 20",
)
_SITUATIONS = (
    "PARTITION BY k DEFINE hot AS price > 60, busy AS volume > 4 PATTERN hot overlaps busy; hot during busy WITHIN 500",
    "DEFINE hot AS price > 60, busy AS volume > 4 PATTERN hot before busy WITHIN 100 RETURN avg(hot.price) AS mean, start(busy) AS since",
    "PARTITION BY k DEFINE a AS price > 60, b AS volume > 4, c AS price < 30 AT LEAST 2 PATTERN a overlaps b AND b before c WITHIN 500",
)
# Conditions that read the match are judged by a search, or by a walk where the pattern leaves no choice, others by whole columns.
_ROW_PATTERNS = tuple(
    f"MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES first(a.price) AS high, last(b.price) AS low {rows} PATTERN {pattern})"
    for rows in ("ONE ROW PER MATCH", "ALL ROWS PER MATCH")
    for pattern in (
        "(a b+ c) DEFINE b AS b.price >= avg(b.price), c AS c.price < a.price",
        "(a b+) DEFINE b AS b.price > a.price",
        "(a b+ c+) DEFINE b AS b.price < prev(b.price), c AS c.price > prev(c.price)",
    )
)


@dataclass(frozen=True, slots=True)
class SmallQuery:
    """A small query with its keywords, and the types of time, key and kind in its events."""

    query: str
    asked: dict[str, Any] = field(default_factory=dict)
    time: str = "int64"
    key: str = "int64"
    kind: str = "dictionary"

    def __str__(self) -> str:
        return repr(self.query)


def card_to_serve() -> Capability | None:
    """Return the compute capability of the card that this process sees; None without one, or without what compiles for it."""
    return card_capability() if importlib.util.find_spec("numba_cuda") else None


def card_named(text: str) -> Capability:
    """Return the compute capability that a text such as 9.0 names; end the command if CUDA's compiler does not know it.

    Raises
    ------
    EngineUnavailable
        Nothing here compiles for a card.
    """
    try:
        known = {f"{major}.{minor}": (major, minor) for major, minor in known_capabilities()}
    except (ImportError, RuntimeError) as fault:
        raise EngineUnavailable(f"nothing here compiles for a card: {fault}") from fault
    if text not in known:
        fail(f"--card={text}: CUDA's compiler knows no such compute capability here; expected one of {', '.join(known)}", USAGE_FAULT)
    return known[text]


def count_kernels(card: Capability | None) -> int:
    """Return how many kernels are compiled for a card."""
    return 0 if card is None else len(forms())


def small_queries() -> list[SmallQuery]:
    """Return all small queries; those that take longest to compile come first."""
    keyed = {"partition_by": ["k"]}
    anything = {**keyed, "strategy": "skip_till_any_match"}
    return [
        *(SmallQuery(_TREND, {**keyed, "algorithm": algorithm}) for algorithm in ("auto", "ses_automaton", "nfab", "backtracking")),
        *(SmallQuery(_CHAIN, {**anything, "algorithm": algorithm}) for algorithm in ("lazy_chain", "lazy_tree", "join_tree", "auto")),
        *(SmallQuery(query, {"algorithm": each}) for query in _SITUATIONS for each in ("range_join", "end_join", "nested_loop", "auto")),
        *(SmallQuery(query, asked) for query in _QUERIES for asked in (keyed, {})),
        *(SmallQuery(query, {**keyed, "algorithm": each}) for query in _QUERIES for each in ("ses_automaton", "nfab", "backtracking")),
        *(SmallQuery(query, {**anything, "algorithm": each}) for query in _QUERIES for each in ("lazy_chain", "lazy_tree", "join_tree")),
        *(SmallQuery(_TREND, {**keyed, "output": output}) for output in OUTPUTS),
        *(SmallQuery(query, {**keyed, "strategy": each}) for query in _QUERIES[:3] for each in STRATEGIES),
        *(SmallQuery(query, {**keyed, "after_match": each}) for query in _QUERIES[:2] for each in AFTER_MATCH),
        *(SmallQuery(query, {**keyed, "ties": "position"}) for query in _QUERIES),
        *(SmallQuery(query, {"output": output}) for query in (*_QUERIES[:3], _ROWS_OUT, *_PROPERTIES) for output in OUTPUTS),
        *(
            SmallQuery(query, {"output": output, **asked})
            for query in _SITUATIONS
            for asked in ({}, {"detect": "early"})
            for output in OUTPUTS[:4]
        ),
        *(SmallQuery(query, keyed, time=time) for query in (_TREND, _PAIR) for time in ("int32", "float64")),
        *(
            SmallQuery(query, {**keyed, "time_unit": unit}, time=time)
            for query in (_TREND, _PAIR)
            for time, unit in (("us", "us"), ("ns", "ns"), ("date", "days"))
        ),
        *(SmallQuery(query, keyed, key=key) for query in (_TREND, _PAIR) for key in ("int32", "text", "dictionary", "nulls")),
        *(SmallQuery(query, keyed, kind=kind) for query in (_TREND, *_PROPERTIES) for kind in ("text", "large")),
        SmallQuery(_ROWS_OUT, keyed),
        SmallQuery(_TREND, {**keyed, "timeouts": True}),
        *map(SmallQuery, _ROW_PATTERNS),
    ]


def events_of(small: SmallQuery) -> pa.Table:
    """Return events with the types that a small query asks for, sorted by time."""
    draw = np.random.default_rng(2026)
    times, keys = np.cumsum(draw.integers(0, 3, _EVENTS)), draw.integers(0, 20, _EVENTS)
    kinds = np.array(list("ABCDEFGH"))[draw.integers(0, 8, _EVENTS)]
    return pa.table(
        {
            "ts": _times(times, small.time),
            "k": _keys(keys, small.key),
            "type": _texts(kinds, small.kind),
            "price": draw.integers(0, 400, _EVENTS) / 4,
            "volume": pa.array(draw.integers(0, 9, _EVENTS), mask=draw.random(_EVENTS) < 0.01),
            "name": _texts([f"n{each}" for each in draw.integers(0, 30, _EVENTS)], small.kind),
        }
    )


def _texts(values: Any, form: str) -> pa.Array:
    if form == "dictionary":
        return pa.array(values, pa.string()).dictionary_encode()
    return pa.array(values, pa.large_string() if form == "large" else pa.string())


def _times(times: Any, form: str) -> pa.Array:
    if form in ("us", "ns"):
        return pa.array(times.astype(f"datetime64[{form}]"))
    return pa.array(times.astype(np.int32)).cast(pa.date32()) if form == "date" else pa.array(times.astype(form))


def _keys(keys: Any, form: str) -> pa.Array:
    if form == "nulls":
        return pa.array(keys, mask=keys == 0)
    if form in ("text", "dictionary"):
        return _texts([f"k{each}" for each in keys], form)
    return pa.array(keys.astype(form))


def run_query(small: SmallQuery) -> None:
    """Run a query so that its kernels are compiled; nothing happens if its algorithm cannot answer it."""
    from gpu_cep import api

    try:
        api.match(events_of(small), small.query, engine="cpu", max_steps=10_000_000, **small.asked)
    except CepError:
        return


def _be_quiet() -> None:
    os.environ[QUIET] = "1"


@dataclass(frozen=True, slots=True)
class CardForm:
    """A kernel to compile for a card of that compute capability."""

    form: Form
    capability: Capability

    def __str__(self) -> str:
        return self.form.kernel.rpartition(":")[2]


def compile_for_card(asked: CardForm) -> str:
    """Compile a kernel for a card; return why it cannot be compiled, or an empty text."""
    try:
        compile_form(asked.form, asked.capability)
    except Exception as fault:
        # whatever a compiler throws: queries on the CPU need none of it
        return f"{asked}: {type(fault).__name__}: {fault}"
    return ""


def _compile(task: SmallQuery | CardForm) -> str:
    """Run a small query, or compile a kernel for a card; return why that fails, or an empty text."""
    if isinstance(task, CardForm):
        return compile_for_card(task)
    run_query(task)
    return ""


def warm_up(chosen: Sequence[SmallQuery], card: Capability | None = None) -> Iterator[int]:
    """Run small queries, and compile for a card if there is one, in a process for each core; give after each how many are done.

    What cannot be compiled for the card gives a notice, and so does a query or kernel whose process was killed.
    """
    listed = [] if card is None else [CardForm(form, card) for form in forms()]
    tasks: list[SmallQuery | CardForm] = [*listed, *chosen]
    processes = min(available_threads(), len(tasks))
    faults: list[tuple[type, str]] = []
    for done, ended in enumerate(run_side_by_side(_compile, tasks, processes, _be_quiet), 1):
        fault = f"{ended.task}: {_KILLED}" if ended.killed else ended.result
        if fault:
            faults.append((type(ended.task), fault))
        yield done
    for kind, count, noun in ((CardForm, len(listed), "kernels for the card"), (SmallQuery, len(chosen), "sets of kernels for the CPU")):
        own = [fault for of, fault in faults if of is kind]
        if own:
            say(f"{len(own)} of {count} {noun} are left to queries: {own[0]}")
    if card is not None:
        note_done(card)


@dataclass(frozen=True, slots=True)
class Cache:
    """Where compiled kernels are kept, how many forms of them there are, and the bytes that they take."""

    folder: str
    kernels: int
    bytes: int


def describe_cache() -> Cache:
    """Return the state of the folder for compiled kernels.

    Raises
    ------
    CepError
        There is none: nothing can be written anywhere.
    """
    folder = writable_folder(cache_folder())
    if folder is None:
        raise CepError("compiled kernels can be kept nowhere: neither their folder nor one for temporary files takes a file; try --cache")
    sizes = [path.stat().st_size for suffix in (SUFFIX, CUDA_SUFFIX) for path in folder.glob(f"*{suffix}")]
    return Cache(str(folder), len(sizes), sum(sizes))
