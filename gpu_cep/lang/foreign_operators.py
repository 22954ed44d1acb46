"""Say how an operator of another language is written here, with the operands that stand beside it."""

from __future__ import annotations

import re
from collections.abc import Set
from dataclasses import dataclass

from gpu_cep.lang.literals import escape_wildcards, read_text, write_name

_NAME = r'(?:\w+|"(?:[^"]|"")*"|`(?:[^`]|``)*`)'
_REFERENCE = rf"{_NAME}(?:\[[^\]\s]*\])?(?:\.{_NAME})?"
_LEFT = re.compile(rf"(\w+\({_REFERENCE}\)|{_REFERENCE})\s*\Z")
# Behind these, the operand on the left is more than what stands before the operator.
_SIGNS = tuple("+-*/%")
# Words that may stand before an operand, though they are names, too.
_OF_CASE = frozenset({"CASE", "WHEN", "THEN", "ELSE"})
_RIGHT = re.compile(r"\s*('(?:[^']|'')*')")
# An operand is sought among so many characters before the operator.
_LONGEST_OPERAND = 200


@dataclass(frozen=True, slots=True)
class _Operator:
    """An operator of another language, and how it is written here.

    `form`: the operator; its group `no` is the word or sign that negates it.
    `written`: the same here, with places for `left`, `no`, and what the text behind it says, as a
    `pattern`, or as `text` in which the signs of LIKE have no meaning.
    `example`: what that text is taken to say if there is none.
    `expected`: terminals of which one must be expected; none are asked for if it is empty.
    `folds`: whether the case of letters does not count, so that `pattern` is in small letters.
    """

    form: re.Pattern[str]
    written: str
    example: str
    expected: frozenset[str]
    folds: bool

    def here(self, text: str, position: int) -> str | None:
        """Return how the operator at a place of the query is written here; None if it does not stand there."""
        found = self.form.match(text, position)
        return found and self._filled(text, found)

    def _filled(self, text: str, found: re.Match[str]) -> str:
        behind = _RIGHT.match(text, found.end())
        held = read_text(behind[1]) if behind else self.example
        parts = {
            "left": _operand_before(text[max(0, found.start() - _LONGEST_OPERAND) : found.start()]),
            "no": "NOT " if found.groupdict().get("no") else "",
            "pattern": (held.lower() if self.folds else held).replace("'", "''"),
            "text": escape_wildcards(held).replace("'", "''"),
        }
        return f"write {self.written.format(**parts)}"


def _operand_before(text: str) -> str:
    """Return the operand with which a text ends; ``v.attr`` stands for one that is more than a name or a constant."""
    found = _LEFT.search(text)
    if found is None or text[: found.start()].rstrip().endswith(_SIGNS):
        return "v.attr"
    is_reserved = found[1].isidentifier() and write_name(found[1]) != found[1]
    return "v.attr" if is_reserved or found[1].upper() in _OF_CASE else found[1]


def _operator(form: str, written: str, expected: str = "COMPARISON _LIKE", *, example: str = "text", folds: bool = False) -> _Operator:
    return _Operator(re.compile(form, re.IGNORECASE), written, example, frozenset(expected.split()), folds)


_NOT, _REGEXP = r"(?P<no>not\s+|!\s*)?", "{no}regexp_like({left}, '{pattern}')"
# Behind NOT the parser expects LIKE, BETWEEN and IN.
_OPERATORS = (
    _operator(r"(is\s+)?(?P<no>not\s+)?(none|nil|nan)\b", "IS {no}NULL", "NULL"),
    _operator(r"is\s+true\b", "{left}", "NULL"),
    _operator(r"is\s+false\b", "NOT {left}", "NULL"),
    _operator(r"is\s+unknown\b", "{left} IS NULL", "NULL"),
    _operator(_NOT + r"contains\b", "{left} {no}LIKE '%{text}%'"),
    _operator(_NOT + r"starts[_\s]*with\b", "{left} {no}LIKE '{text}%'"),
    _operator(_NOT + r"ends[_\s]*with\b", "{left} {no}LIKE '%{text}'"),
    _operator(r"(?P<no>not\s+)matches\b", _REGEXP, example="pattern"),
    _operator(_NOT + r"matches\b", _REGEXP, "COMPARISON", example="pattern"),
    _operator(_NOT + r"(regexp|rlike)\b", _REGEXP, example="pattern"),
    _operator(_NOT + r"similar\s+to\b", "{no}regexp_like({left}, 'pattern')"),
    _operator(r"(?P<no>!)?~~\*", "lower({left}) {no}LIKE '{pattern}'", "COMPARISON", example="text%", folds=True),
    _operator(r"(?P<no>!)?~~", "{left} {no}LIKE '{pattern}'", "COMPARISON", example="text%"),
    _operator(r"(?P<no>!)?~\*", "{no}regexp_like({left}, '(?i){pattern}')", "COMPARISON", example="pattern"),
    _operator(r"(?P<no>!)?~", _REGEXP, "COMPARISON", example="pattern"),
    _operator(_NOT + r"ilike\b", "lower({left}) {no}LIKE '{pattern}'", example="text%", folds=True),
)


def operator_at(text: str, positions: tuple[int, ...], expected: Set[str] | None = None) -> str | None:
    """Return how an operator of another language at one of the places is written here; None if there is none.

    `expected`: the terminals that could stand there; None where that is not known.
    """
    possible = [each for each in _OPERATORS if expected is None or not each.expected or each.expected & expected]
    return next(filter(None, (each.here(text, position) for each in possible for position in positions)), None)
