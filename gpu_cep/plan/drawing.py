"""Draw a plan as nodes and arrows.

An event pattern is drawn as one automaton for each branch (thesis Def. 4.1), or as the order of its
variables if that has too many states. For a query over situations, the nodes are the situations, in
their expected order of joins. The arrows are the constraints between them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from gpu_cep.analysis.bound import EventVariable
from gpu_cep.errors import PatternError
from gpu_cep.plan.event_plan import EventPlan, PlannedBranch, PlanT
from gpu_cep.plan.interval_order import assume_statistics, evaluation_order
from gpu_cep.plan.interval_plan import IntervalPlan

# Of automata with more states only the order of variables is drawn.
MOST_STATES = 32

# The assumed number of situations of each name, for an order before any are counted.
ALIKE = 1_000.0


def plan_to_draw(plan: PlanT | None) -> PlanT:
    """Return a plan if there is one; raise PatternError where a query was explained without events."""
    if plan is None:
        raise PatternError("a drawing needs the types of the events; give explain() a table, or one without rows")
    return plan


class NodeKind(Enum):
    """What the nodes of a drawing stand for."""

    STATES = "states"
    VARIABLES = "variables"
    SITUATIONS = "situations"


@dataclass(frozen=True, slots=True)
class Node:
    """A state, a variable or a situation.

    `layer`: its column in the drawing, counted from the left.
    `complete`: whether it is the state in which all variables are bound.
    """

    text: str
    layer: int
    complete: bool = False


@dataclass(frozen=True, slots=True)
class Arrow:
    """An arrow between two nodes, which are given by number; `text` may have several lines."""

    source: int
    target: int
    text: str = ""


@dataclass(frozen=True, slots=True)
class Drawing:
    """The drawing of one branch, or of all situations; `notes` are lines of text, one for each negation."""

    title: str
    shows: NodeKind
    nodes: tuple[Node, ...]
    arrows: tuple[Arrow, ...]
    notes: tuple[str, ...] = ()


def drawings(plan: EventPlan | IntervalPlan) -> tuple[Drawing, ...]:
    """Return a drawing for each branch of the pattern, or one of the situations.

    A state is the set of variables that are bound; an arrow binds an event to
    its variable, and names the conditions that are decided then.
    """
    if isinstance(plan, IntervalPlan):
        return (_situations(plan),)
    count = len(plan.branches)
    titles = ["pattern"] if count == 1 else [f"branch {number + 1} of {count}" for number in range(count)]
    return tuple(_branch(plan, branch, title) for branch, title in zip(plan.branches, titles, strict=True))


def _situations(plan: IntervalPlan) -> Drawing:
    query = plan.query
    order = evaluation_order(assume_statistics(query.constraints, [ALIKE] * len(query.variables)), query.constraints)
    place = {situation: layer for layer, situation in enumerate(order)}
    nodes = tuple(Node(query.variables[situation].name, layer) for situation, layer in place.items())
    pairs = [(place[each.left], place[each.right], each.text) for each in query.constraints]
    arrows = tuple(Arrow(min(one, other), max(one, other), text) for one, other, text in pairs)
    return Drawing("situations and constraints", NodeKind.SITUATIONS, nodes, arrows)


def _branch(plan: EventPlan, branch: PlannedBranch, title: str) -> Drawing:
    variables = [plan.query.variables[v] for v in branch.variables]
    notes = []
    for negation in branch.negations:
        after, before = ("{" + ", ".join(variables[v].name for v in side) + "}" for side in (negation.after, negation.before))
        notes.append(f"no {variables[negation.variable].name} between {after} and {before}")
    states = _states(branch)
    if states is None:
        return Drawing(title, NodeKind.VARIABLES, tuple(_variable_nodes(branch, variables)), tuple(_successions(branch)), tuple(notes))
    complete = (1 << len(branch.before)) - 1
    nodes = tuple(Node(_state_text(branch, variables, state), state.bit_count(), state == complete) for state in states)
    return Drawing(title, NodeKind.STATES, nodes, tuple(_transitions(branch, variables, states)), tuple(notes))


def _states(branch: PlannedBranch) -> list[int] | None:
    """Return the reachable sets of bound variables as masks, breadth first; None if they are too many."""
    found = [0]
    for state in found:
        found += [reached for v in _following(branch, state) if (reached := state | 1 << v) not in found]
        if len(found) > MOST_STATES:
            return None
    return found


def _following(branch: PlannedBranch, state: int) -> list[int]:
    """Return the variables that can be bound next: not bound yet, and all before them are."""
    return [v for v, mask in enumerate(branch.before) if not state >> v & 1 and mask & ~state == 0]


def _state_text(branch: PlannedBranch, variables: list[EventVariable], state: int) -> str:
    return " ".join(variables[v].name for v in range(len(branch.before)) if state >> v & 1) or "∅"


def _transitions(branch: PlannedBranch, variables: list[EventVariable], states: list[int]) -> Iterator[Arrow]:
    for number, state in enumerate(states):
        for v in _following(branch, state):
            yield Arrow(number, states.index(state | 1 << v), _binding(branch, variables, state, v))
        for v in _repeating(branch, variables, state):
            yield Arrow(number, number, _binding(branch, variables, state, v))


def _repeating(branch: PlannedBranch, variables: list[EventVariable], state: int) -> list[int]:
    """Return the bound variables that may bind further events: none after them is bound."""
    closed = 0
    for v, mask in enumerate(branch.before):
        closed |= mask if state >> v & 1 else 0
    return [v for v in range(len(branch.before)) if state >> v & 1 and not closed >> v & 1 and variables[v].maximum != 1]


def _binding(branch: PlannedBranch, variables: list[EventVariable], state: int, v: int) -> str:
    """Return the text of an arrow: the variable with its quantifier, and the conditions that its event decides."""
    known = state | 1 << v
    decided = [c.text for c in branch.conditions if v in c.variables and all(known >> u & 1 for u in c.variables)]
    return "\n".join([_variable_text(variables[v]), *decided])


def _variable_text(variable: EventVariable) -> str:
    if variable.minimum == variable.maximum == 1:
        return variable.name
    if variable.maximum is None:
        return variable.name + ("+" if variable.minimum == 1 else f"{{{variable.minimum},}}")
    return variable.name + (
        f"{{{variable.minimum}}}" if variable.minimum == variable.maximum else f"{{{variable.minimum},{variable.maximum}}}"
    )


def _variable_nodes(branch: PlannedBranch, variables: list[EventVariable]) -> Iterator[Node]:
    """Yield a node for each variable; its layer is the length of the longest chain of variables before it."""
    layers: dict[int, int] = {}

    def layer(v: int) -> int:
        if v not in layers:
            layers[v] = max((layer(u) + 1 for u in _members(branch.before[v])), default=0)
        return layers[v]

    for v in range(len(branch.before)):
        yield Node(_variable_text(variables[v]), layer(v))


def _successions(branch: PlannedBranch) -> Iterator[Arrow]:
    """Yield an arrow from each variable to each one that follows it with none in between."""
    for v, mask in enumerate(branch.before):
        earlier = _members(mask)
        yield from (Arrow(u, v) for u in earlier if not any(branch.before[w] >> u & 1 for w in earlier))


def _members(mask: int) -> list[int]:
    return [v for v in range(mask.bit_length()) if mask >> v & 1]
