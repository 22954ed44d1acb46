"""What algorithms are expected to cost."""

from __future__ import annotations

import pytest

from gpu_cep.plan.costs import Estimate, extrapolate_offers


def test_offers_of_a_sample_are_those_of_a_batch():
    assert extrapolate_offers([100.0, 100.0], sampled=100, window_size=10.0, events=1_000) == pytest.approx(2_000)


def test_runs_gather_until_a_window_has_passed():
    """Three offers for each event of the second half, one of the first: they grow by 0.04 an event, for half a window on average."""
    gathered = extrapolate_offers([50.0, 150.0], sampled=100, window_size=500.0, events=1_000)
    assert gathered == pytest.approx((1 + 0.04 * 250) * 1_000)
    assert extrapolate_offers([50.0, 150.0], sampled=100, window_size=10.0, events=1_000) == pytest.approx(3_000)


def test_nothing_sampled_is_nothing_offered():
    assert extrapolate_offers([0.0, 0.0], sampled=0, window_size=10.0, events=1_000) == 0.0


def test_estimates_grow_with_the_events():
    grown = Estimate("nfab", 10.0, 4.0, 2.0, order="a, b").scaled(2.5)
    assert grown == Estimate("nfab", 25.0, 10.0, 5.0, order="a, b")
