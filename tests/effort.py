"""How many examples a property tries: few in the fast suite, more in the full one, or as many as CEP_EXAMPLES asks for."""

from __future__ import annotations

from hypothesis import HealthCheck, Phase, settings

# Of a property that says nothing else.
FAST, FULL = 20, 50


def examples(fast: int, full: int) -> settings:
    """Return the settings of a property that tries so many examples in the fast suite, and in the full one; asked for more, that many."""
    by_suite = {"fast": fast, "full": full}
    return settings(max_examples=by_suite.get(settings.get_current_profile_name(), max(full, settings().max_examples)))


def load(suite: str, asked: int | None, *, shrinks: bool) -> None:
    """Load the settings of a suite. Every run tries the same examples, so that its verdict is the code's, unless a number was asked for.

    A failing example is made small if the suite `shrinks`; the fault is found either way.
    """
    phases = tuple(Phase) if shrinks else (Phase.explicit, Phase.generate)
    # how long it takes to draw is the machine's, too
    timeless = settings(deadline=None, phases=phases, suppress_health_check=[HealthCheck.too_slow])
    settings.register_profile("fast", timeless, max_examples=FAST, derandomize=True)
    settings.register_profile("full", timeless, max_examples=FULL, derandomize=True)
    settings.register_profile("asked", timeless, max_examples=asked or FULL)
    settings.load_profile(suite if asked is None else "asked")
