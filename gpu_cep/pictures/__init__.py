"""Draw boxes, lines and text as pictures, and write these to files."""

from gpu_cep.pictures.picture import Picture

__all__ = ["Picture"]
