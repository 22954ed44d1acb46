"""The faults that ``make mutants`` plants fit the sources: each text stands once in its file, and the tests that are named exist."""

from __future__ import annotations

from pathlib import Path

from tests.mutants.faults import FAULTS

ROOT = Path(__file__).resolve().parents[2]


def test_each_fault_has_a_name_of_its_own():
    assert len({fault.name for fault in FAULTS}) == len(FAULTS) >= 30


def test_what_is_replaced_stands_once_in_its_file():
    sources = {fault.path: (ROOT / fault.path).read_text(encoding="utf-8") for fault in FAULTS}
    assert [fault.name for fault in FAULTS if sources[fault.path].count(fault.right) != 1] == []


def test_sources_with_a_fault_compile():
    for fault in FAULTS:
        source = (ROOT / fault.path).read_text(encoding="utf-8")
        assert fault.wrong != fault.right
        compile(source.replace(fault.right, fault.wrong), fault.path, "exec")


def test_the_tests_that_are_named_exist():
    for fault in FAULTS:
        assert fault.tests
        for named in fault.tests:
            path, _, function = named.partition("::")
            assert (ROOT / path).exists(), named
            assert not function or f"def {function}(" in (ROOT / path).read_text(encoding="utf-8"), named
