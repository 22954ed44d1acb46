"""The formats of pictures, which the suffixes of their files name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gpu_cep.errors import CepError, EngineUnavailable

FORMATS = (".png", ".svg", ".pdf")


def check_suffix(path: str | Path, formats: Sequence[str] = FORMATS) -> str:
    """The format that a file's name asks for.

    Raises
    ------
    CepError
        It is none of `formats`.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in formats:
        raise CepError(f"cannot tell the format of {path} from its suffix; expected one of {', '.join(formats)}")
    return suffix


def require_matplotlib(what: str) -> None:
    """Refuse to draw `what` where there is nothing to draw it with.

    Raises
    ------
    EngineUnavailable
        There is no matplotlib.
    """
    try:
        import matplotlib  # noqa: F401
    except ImportError as fault:
        raise EngineUnavailable(f"{what} need matplotlib, which is not installed: pip install 'gpu_cep[plot]'") from fault
