"""Hold a picture as plain data, and write it to a file."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from gpu_cep.pictures.files import require_matplotlib, save_rendered
from gpu_cep.pictures.shapes import Shape
from gpu_cep.pictures.svg import svg


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture that notebooks display; later `shapes` lie above earlier ones.

    `width` and `height` are in pixels; `name` is the picture's CSS class.
    """

    name: str
    width: float
    height: float
    shapes: tuple[Shape, ...] = field(repr=False)

    @property
    def svg(self) -> str:
        """Return the text of an SVG file."""
        return svg(self.name, self.width, self.height, self.shapes)

    def save(self, path: str | Path) -> None:
        """Write the picture to a file in the format of its suffix: ``.png``, ``.svg`` or ``.pdf``.

        Raises
        ------
        CepError
            The suffix is none of these, the picture is larger than a ``.png`` can be, or the
            file cannot be written.
        EngineUnavailable
            matplotlib (the extra ``plot``) is not installed; only ``.svg`` does without.
        """
        save_rendered(path, self.render)

    def render(self, suffix: str) -> bytes:
        """Return the bytes of a file that :meth:`save` writes with this suffix; raises as it does."""
        if suffix == ".svg":
            return self.svg.encode()
        require_matplotlib(f"pictures in {suffix} (unlike those in .svg)")
        from gpu_cep.pictures.figure import render_picture

        return render_picture(self.width, self.height, self.shapes, suffix)

    def _repr_svg_(self) -> str:
        return self.svg
