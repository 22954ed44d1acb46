"""Faults in what streams keep and when they report, and where they lie."""

from __future__ import annotations

from tests.mutants.fault import Fault

_CERTAINTY, _STEPS = "gpu_cep/engine/streaming/certainty.py", "gpu_cep/stream_steps.py"
_STREAM = ("tests/api/test_stream.py",)

STREAMS = (
    Fault("quantified-end-reported-at-once", _CERTAINTY, " or _ends_quantified(plan, branch)", "", _STREAM),
    Fault("open-negation-reported-at-once", _CERTAINTY, "any(not negation.before for", "any(False for", _STREAM),
    Fault("window-over-a-tick-early", _CERTAINTY, "following(watermark), window)", "following(following(watermark)), window)", _STREAM),
    Fault("last-match-reported-twice", "gpu_cep/engine/input/ticks.py", "else time + 1", "else time", _STREAM),
    Fault("event-at-the-watermark-in-time", _STEPS, "in_time = times > clock.watermark", "in_time = times >= clock.watermark", _STREAM),
    Fault("matched-beyond-the-watermark", _STEPS, "if until is None else _known(live, state, until)", "", _STREAM),
    Fault("taken-matches-forgotten", _STEPS, "before, found, decided, later)", "before, found, decided, None)", _STREAM),
)
