"""Write files of pictures, check their formats, and that matplotlib is installed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

from gpu_cep.errors import CepError, EngineUnavailable
from gpu_cep.whole_files import save_whole

FORMATS = (".png", ".svg", ".pdf")


def check_suffix(path: str | Path, formats: Sequence[str] = FORMATS) -> str:
    """Return the suffix of a file's name, in lower case.

    Raises
    ------
    CepError
        The suffix is none of `formats`.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in formats:
        raise CepError(f"cannot tell the format of {path} from its suffix; expected one of {', '.join(formats)}")
    return suffix


def save_rendered(path: str | Path, render: Callable[[str], bytes], formats: Sequence[str] = FORMATS) -> None:
    """Write a picture, of which `render` makes the bytes of a file with some suffix, to a file.

    Raises
    ------
    CepError
        The suffix is none of `formats`, or the file cannot be written; or `render` raises it.
    """
    drawn = render(check_suffix(path, formats))
    save_whole(path, lambda target: target.write(drawn))


def lack_of_matplotlib(what: str) -> str | None:
    """Return a sentence that says that `what`, pictures, need matplotlib; None if it is installed."""
    return None if find_spec("matplotlib") else f"{what} need matplotlib, which is not installed: pip install 'gpu_cep[plot]'"


def require_matplotlib(what: str) -> None:
    """Check that matplotlib is installed; `what`, the pictures that need it, is named in the error.

    Raises
    ------
    EngineUnavailable
        matplotlib is not installed.
    """
    lack = lack_of_matplotlib(what)
    if lack is not None:
        raise EngineUnavailable(lack)
