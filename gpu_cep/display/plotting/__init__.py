"""Draw the matches of a run, and the counts that each of its stages let through."""

from gpu_cep.display.plotting.timeline import Timeline, plot
from gpu_cep.display.plotting.waterfall import waterfall
from gpu_cep.pictures import Picture

__all__ = ["Picture", "Timeline", "plot", "waterfall"]
