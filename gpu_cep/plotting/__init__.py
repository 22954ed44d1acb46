"""Pictures of matches: what was found, over the series that it was found in."""

from gpu_cep.plotting.timeline import Timeline, plot

__all__ = ["Timeline", "plot"]
