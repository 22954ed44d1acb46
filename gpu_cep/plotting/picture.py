"""A picture made of text."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from gpu_cep.errors import CepError


@dataclass(frozen=True, slots=True)
class Picture:
    """An SVG picture, which notebooks show by themselves; `svg` is the file's text."""

    svg: str = field(repr=False)

    def save(self, path: str | Path) -> None:
        """Write the picture to a file.

        Raises
        ------
        CepError
            The file's suffix is not ``.svg``.
        """
        if Path(path).suffix.lower() != ".svg":
            raise CepError(f"cannot tell the format of {path} from its suffix; expected .svg")
        Path(path).write_text(self.svg, encoding="utf-8")

    def _repr_svg_(self) -> str:
        return self.svg
