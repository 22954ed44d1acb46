"""Draw the matches of a run, and the counts that each of its stages let through."""

from gpu_cep.display.pictures import Picture
from gpu_cep.display.plotting.timeline import Timeline, plot
from gpu_cep.display.plotting.waterfall import waterfall

__all__ = ["Picture", "Timeline", "plot", "waterfall"]
