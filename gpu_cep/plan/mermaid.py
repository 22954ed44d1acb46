"""Write drawings as Mermaid text, which notebooks, forges and editors can draw."""

from __future__ import annotations

from collections.abc import Iterator

from gpu_cep.plan.drawing import Drawing, NodeKind, drawings
from gpu_cep.plan.event_plan import EventPlan

SUFFIX = ".mmd"

_LETTERS = {NodeKind.STATES: "s", NodeKind.VARIABLES: "v"}


def mermaid(plan: EventPlan) -> str:
    """Return a flowchart with a subgraph for each branch of the pattern; the complete state has a double border."""
    lines = ["flowchart LR"]
    for number, drawing in enumerate(drawings(plan)):
        lines.append(f"  subgraph b{number}[{_text(drawing.title)}]")
        lines += [f"    {line}" for line in _flowchart(drawing, f"b{number}")]
        lines.append("  end")
    return "\n".join(lines) + "\n"


def _flowchart(drawing: Drawing, name: str) -> Iterator[str]:
    prefix = name + _LETTERS[drawing.shows]
    for number, node in enumerate(drawing.nodes):
        left, right = ("(((", ")))") if node.complete else ("(", ")")
        yield f"{prefix}{number}{left}{_text(node.text)}{right}"
    for arrow in drawing.arrows:
        label = f"|{_text(arrow.text)}|" if arrow.text else ""
        yield f"{prefix}{arrow.source} -->{label} {prefix}{arrow.target}"
    for number, note in enumerate(drawing.notes):
        yield f"{name}n{number}>{_text(note)}]"


def _text(text: str) -> str:
    """Return the text in quotes, with character codes for characters of Mermaid's syntax."""
    escaped = "".join(c if c.isalnum() or c in " ∅{},.+-*/_=" else "<br>" if c == "\n" else f"#{ord(c)};" for c in text)
    return f'"{escaped}"'
