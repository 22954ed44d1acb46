"""A picture as plain data, and as a file."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from gpu_cep.display.pictures.files import check_suffix, require_matplotlib
from gpu_cep.display.pictures.shapes import Shape
from gpu_cep.display.pictures.svg import svg


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture, which notebooks show by themselves; what comes later in `shapes` lies above what comes before."""

    name: str
    width: float
    height: float
    shapes: tuple[Shape, ...] = field(repr=False)

    @property
    def svg(self) -> str:
        """The text of an SVG file."""
        return svg(self.name, self.width, self.height, self.shapes)

    def save(self, path: str | Path) -> None:
        """Write the picture to a file, as its suffix says: ``.png``, ``.svg`` or ``.pdf``.

        Raises
        ------
        CepError
            The suffix is none of these, or the picture is larger than a ``.png`` can be.
        EngineUnavailable
            There is no matplotlib (the extra ``plot``), which draws all but ``.svg``.
        """
        suffix = check_suffix(path)
        if suffix == ".svg":
            Path(path).write_text(self.svg, encoding="utf-8")
            return
        require_matplotlib(f"pictures in {suffix} (unlike those in .svg)")
        from gpu_cep.display.pictures.figure import render_picture

        Path(path).write_bytes(render_picture(self.width, self.height, self.shapes, suffix))

    def _repr_svg_(self) -> str:
        return self.svg
