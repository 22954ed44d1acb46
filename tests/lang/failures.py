"""Parse what is wrong, and compare what is told of it."""

from typing import Any

import pytest

from gpu_cep.errors import DiagnosedError, PatternSyntaxError
from gpu_cep.lang.parser import parse


def failure(text: Any) -> DiagnosedError:
    with pytest.raises(DiagnosedError) as caught:
        parse(text)
    return caught.value


def reports_of(text: str) -> list[str]:
    """The reports of a text, which blank lines part."""
    return text.strip().split("\n\n")


def check_report(report: str) -> None:
    """Parse the query that a report shows in its second line: it must be told as reported."""
    error = failure(report.split("\n")[1].removeprefix("  "))
    assert isinstance(error, PatternSyntaxError)
    assert str(error) == report
