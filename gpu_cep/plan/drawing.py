"""A plan as a drawing: the automaton of each branch (thesis Def. 4.1), or its order where that has too many states, as Mermaid text."""

from __future__ import annotations

from collections.abc import Iterator

from gpu_cep.analysis.bound import EventVariable
from gpu_cep.plan.plan import Plan, PlannedBranch

# Automata of more states than this are not drawn, but the order of their variables.
MOST_STATES = 32


def mermaid(plan: Plan) -> str:
    """A flowchart: a subgraph for each branch of the pattern.

    A state is the set of variables that are bound; an arrow binds an event to
    its variable, and names the conditions that are decided then. The complete
    state has a double border.
    """
    lines = ["flowchart LR"]
    for number, branch in enumerate(plan.branches):
        title = "pattern" if len(plan.branches) == 1 else f"branch {number + 1} of {len(plan.branches)}"
        lines.append(f"  subgraph b{number}[{_text(title)}]")
        lines += [f"    {line}" for line in _branch(plan, branch, f"b{number}")]
        lines.append("  end")
    return "\n".join(lines) + "\n"


def _branch(plan: Plan, branch: PlannedBranch, name: str) -> Iterator[str]:
    variables = [plan.query.variables[v] for v in branch.variables]
    states = _states(branch)
    yield from _order(branch, variables, name) if states is None else _automaton(branch, variables, states, name)
    for number, negation in enumerate(branch.negations):
        after, before = ("{" + ", ".join(variables[v].name for v in side) + "}" for side in (negation.after, negation.before))
        yield f"{name}n{number}>{_text(f'no {variables[negation.variable].name} between {after} and {before}')}]"


def _states(branch: PlannedBranch) -> list[int] | None:
    """The reachable sets of bound variables as masks, breadth first; None if they are too many to be drawn."""
    found = [0]
    for state in found:
        found += [reached for v in _following(branch, state) if (reached := state | 1 << v) not in found]
        if len(found) > MOST_STATES:
            return None
    return found


def _following(branch: PlannedBranch, state: int) -> list[int]:
    """The variables that may be bound next: not bound yet, and after bound ones only."""
    return [v for v, mask in enumerate(branch.before) if not state >> v & 1 and mask & ~state == 0]


def _automaton(branch: PlannedBranch, variables: list[EventVariable], states: list[int], name: str) -> Iterator[str]:
    complete = (1 << len(branch.before)) - 1
    for number, state in enumerate(states):
        left, right = ("(((", ")))") if state == complete else ("(", ")")
        bound = " ".join(variables[v].name for v in range(len(branch.before)) if state >> v & 1)
        yield f"{name}s{number}{left}{_text(bound or '∅')}{right}"
    for number, state in enumerate(states):
        for v in _following(branch, state):
            yield f"{name}s{number} -->|{_text(_binding(branch, variables, state, v))}| {name}s{states.index(state | 1 << v)}"
        for v in _repeating(branch, variables, state):
            yield f"{name}s{number} -->|{_text(_binding(branch, variables, state, v))}| {name}s{number}"


def _repeating(branch: PlannedBranch, variables: list[EventVariable], state: int) -> list[int]:
    """The bound variables that may bind further events: none after them is bound."""
    closed = 0
    for v, mask in enumerate(branch.before):
        closed |= mask if state >> v & 1 else 0
    return [v for v in range(len(branch.before)) if state >> v & 1 and not closed >> v & 1 and variables[v].maximum != 1]


def _binding(branch: PlannedBranch, variables: list[EventVariable], state: int, v: int) -> str:
    """What an arrow says: the variable, how many events it binds in all, and the conditions that its event decides."""
    known = state | 1 << v
    decided = [c.text for c in branch.conditions if v in c.variables and all(known >> u & 1 for u in c.variables)]
    return "\n".join([variables[v].name + _quantifier(variables[v]), *decided])


def _quantifier(variable: EventVariable) -> str:
    if variable.minimum == variable.maximum == 1:
        return ""
    if variable.maximum is None:
        return "+" if variable.minimum == 1 else f"{{{variable.minimum},}}"
    return f"{{{variable.minimum}}}" if variable.minimum == variable.maximum else f"{{{variable.minimum},{variable.maximum}}}"


def _order(branch: PlannedBranch, variables: list[EventVariable], name: str) -> Iterator[str]:
    """The variables, and an arrow between each two that follow one another immediately."""
    for v in range(len(branch.before)):
        yield f"{name}v{v}({_text(variables[v].name + _quantifier(variables[v]))})"
    for v, mask in enumerate(branch.before):
        earlier = [u for u in range(len(branch.before)) if mask >> u & 1]
        yield from (f"{name}v{u} --> {name}v{v}" for u in earlier if not any(branch.before[w] >> u & 1 for w in earlier))


def _text(text: str) -> str:
    """Text in quotes, in which what Mermaid may take for its own syntax stands as character codes."""
    escaped = "".join(c if c.isalnum() or c in " ∅{},.+-*/_=" else "<br>" if c == "\n" else f"#{ord(c)};" for c in text)
    return f'"{escaped}"'
