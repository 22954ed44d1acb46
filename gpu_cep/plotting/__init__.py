"""Pictures: of matches, over the series that they were found in, and of what each stage of a run let through."""

from gpu_cep.plotting.picture import Picture
from gpu_cep.plotting.timeline import Timeline, plot
from gpu_cep.plotting.waterfall import waterfall

__all__ = ["Picture", "Timeline", "plot", "waterfall"]
