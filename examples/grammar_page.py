"""The docs' page of the grammar, made of the grammars that the parser reads; ``make pages`` writes it.

Rules keep their names and their order. Keywords and signs stand as queries have them. What only the parser
needs is left out: aliases, priorities, and what it reads at once of which other rules say the same.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from gpu_cep.lang.grammar_tables import EVENTS, ROW_PATTERNS

PAGE = Path(__file__).resolve().parents[1] / "docs" / "grammar.md"
# Terminals that are neither keywords nor signs, and what they are.
WORDS = {
    "NAME": "letters, digits and `_`, no digit first; none of the reserved words below",
    "WORD": "the same, reserved or not",
    "QUOTED": 'any characters in double quotes or backquotes, which are doubled inside: `"the value"`',
    "TEXT": "any characters in single quotes, which are doubled inside: `'it''s'`",
    "INT": "digits: `15`",
    "DECIMAL": "digits with a point: `0.8`",
    "FLOAT": "a number with an exponent: `1.5e3`",
    "PERCENT": "a number with `%` right behind it, and no operand behind that: `80%`",
    "UNIT": "a unit of time, such as `days`; `EVENTS` in `WITHIN`",
    "COMPARISON": "`=` `==` `<>` `!=` `<` `<=` `>` `>=`; of a `SUBSET` only `=`",
    "STRATEGY": "`skip_till_any_match`, or another of the five [strategies](language.md#strategies)",
}
SHORTCUTS = {"LITERALS"}
# Characters of a line.
LINE = 120

PROSE = """<!-- make pages writes this page from the grammars in gpu_cep/lang -->

# The grammar

This page is the whole grammar, made of the one that the parser reads. What the constructs mean, with examples that run, is said in the
[reference](language.md), in [Interval patterns](intervals.md) and in [MATCH_RECOGNIZE](row-patterns.md).

`[x]` may be left out, `x*` is any number of `x`, `x+` one or more, `x | y` one of the two. Signs stand in quotes. Words in capitals are
keywords, which may be written in upper or lower case. `--` begins a comment to the end of the line; `/* … */` is one, too.

## Queries over events and situations

{events}

## MATCH_RECOGNIZE

Names, numbers, conditions and lengths are as above, but for the rules that stand here again. `INITIAL` and `SEEK` are read in order to be
refused by name.

{rows}

## Words, numbers and signs

| word | what it is |
|---|---|
{words}

## Reserved words

A reserved word is no name unless it stands in double quotes or backquotes. Behind a dot no word is reserved.

- In queries over events and situations: {reserved}.
- In MATCH_RECOGNIZE: {reserved_rows}.
"""

_RULE = re.compile(r"^(?:%override )?[?!]?(\w+)(?:\.\d+)?:(.*(?:\n[ \t]+\S.*)*)", re.MULTILINE)
_HEADING = re.compile(r"(?<=\n\n)// ([^,.\n]+(?:, [A-Z ]+)*)[,.]?.*\n\n")
_PATTERN = re.compile(r"/(.*)/i?")
_LOOKING = re.compile(r"\(\?[=!].*\)$")


class Rule(NamedTuple):
    """A rule or a terminal: its name, and its text in lark's notation."""

    name: str
    text: str


def page() -> str:
    """Return the page."""
    events, rows = (language.grammar for language in (EVENTS, ROW_PATTERNS))
    terminals = {rule.name: rule.text.strip() for rule in rules(rows) if is_terminal(rule.name)}
    return PROSE.format(
        events=sections(events, terminals),
        rows=sections(rows.removeprefix(events), terminals),
        words="\n".join(f"| `{name}` | {what} |" for name, what in WORDS.items()),
        reserved=reserved_words(events),
        reserved_rows=reserved_words(rows),
    )


def rules(grammar: str) -> list[Rule]:
    """Return what a grammar defines, terminals among it."""
    return [Rule(found[1], re.sub(r"^\s*//.*$|->\s*\w+", "", found[2], flags=re.MULTILINE)) for found in _RULE.finditer(grammar)]


def is_terminal(name: str) -> bool:
    return name.isupper()


def sections(grammar: str, terminals: Mapping[str, str]) -> str:
    """Return the rules of a grammar, under the headings that its comments are."""
    opening, *parts = _HEADING.split(grammar)
    titled = [("Queries", opening), *zip(parts[::2], parts[1::2], strict=True)]
    shown = ((title, [rule for rule in rules(text) if not is_terminal(rule.name)]) for title, text in titled)
    return "\n\n".join(f"### {title}\n\n```text\n{block(found, terminals)}\n```" for title, found in shown if found)


def block(found: list[Rule], terminals: Mapping[str, str]) -> str:
    """Return rules, their names in a column."""
    width = max(len(rule.name.strip("_")) for rule in found)
    return "\n".join(laid_out(rule, width, terminals) for rule in found)


def laid_out(rule: Rule, width: int, terminals: Mapping[str, str]) -> str:
    """Return one rule: its alternatives on a line, or on a line each."""
    kept = [each for each in alternatives(rule.text) if not SHORTCUTS & set(re.findall(r"\w+", each))]
    shown = [_plain(re.sub(r"\w+", lambda name: symbol(name[0], terminals), each)) for each in kept]
    name, joined = rule.name.strip("_"), " | ".join(shown)
    if len(shown) == 1:
        return f"{name:{width}} := " + f"\n{'':{width + 4}}".join(textwrap.wrap(joined, LINE - width))
    return f"{name:{width}} := " + (joined if len(joined) <= LINE - width else f"\n{'':{width}}  | ".join(shown))


def alternatives(text: str) -> list[str]:
    """Split the text of a rule at the bars that are in no brackets."""
    found, depth = [""], 0
    for sign in " ".join(text.split()):
        depth += (sign in "([") - (sign in ")]")
        if sign == "|" and not depth:
            found.append("")
        else:
            found[-1] += sign
    return [each.strip() for each in found]


def symbol(name: str, terminals: Mapping[str, str]) -> str:
    """Return a name of a rule as the page has it: keywords in capitals, signs in quotes."""
    if not is_terminal(name):
        return name.strip("_")
    text = terminals[name]
    if name in WORDS or text.startswith('"'):
        return name if name in WORDS else text
    found = _PATTERN.fullmatch(text)
    assert found is not None, f"{name} is neither a keyword nor a sign, nor described in WORDS"
    pattern = _LOOKING.sub("", found[1]).replace(r"\b", "").replace(r"\s+", " ").replace("(?:", "(")
    if pattern.islower():
        return pattern.replace("|", " | ").upper()
    signs = [f'"{each.replace(chr(92), "")}"' for each in pattern.split("|")]
    return f"({' | '.join(signs)})" if len(signs) > 1 else signs[0]


def _plain(text: str) -> str:
    """Return an alternative without brackets around what stands in brackets, or alone."""
    inside = re.sub(r"\[\(([^()]*)\)\]", r"[\1]", text)
    return re.sub(r"^\(([^()]*)\)$", r"\1", inside)


def reserved_words(grammar: str) -> str:
    """Return the reserved words of a grammar, which its last rule for names lists."""
    *_, listed = re.findall(r"NOT_RESERVED: /\(\?!\(\?:([a-z_|]+)\)", grammar)
    return ", ".join(f"`{word}`" for word in listed.split("|"))


def main() -> None:
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
