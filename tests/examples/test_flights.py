"""The demo's flights: nothing is dropped in silence, and the events are what the queries take them for."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture
def flights(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    return import_module("flights")


def test_every_flight_is_an_event_or_counted_as_dropped(flights: ModuleType) -> None:
    departures = flights.flights()
    assert departures.total == 336_776
    assert (departures.without_departure, departures.without_tailnum, departures.dropped) == (8_255, 2_512, 8_255)
    assert departures.events.num_rows == 328_521
    assert all(column.null_count == 0 for column in departures.events.columns)


def test_legs_number_an_aircrafts_flights_in_the_order_of_departure(flights: ModuleType) -> None:
    events = flights.flights().events.sort_by([("tailnum", "ascending"), ("departure", "ascending")]).to_pandas()
    steps = events.groupby("tailnum")["leg"].diff()
    assert set(steps.dropna()) == {1}
    assert set(events["leg"][steps.isna()]) == {1}


def test_a_late_flight_departs_on_the_day_it_left(flights: ModuleType) -> None:
    events = flights.flights().events.to_pandas()
    latest = events.loc[events["dep_delay"].idxmax()]  # planned for 9 January 2013, 9:00 in New York, 1,301 minutes late
    assert (latest["tailnum"], latest["dep_delay"]) == ("N384HA", 1_301)
    assert latest["departure"].isoformat() == "2013-01-10T11:41:00+00:00"
