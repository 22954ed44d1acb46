"""Pictures made of boxes, lines and text, and the files that they are written to; nothing here knows what they show."""

from gpu_cep.display.pictures.picture import Picture

__all__ = ["Picture"]
