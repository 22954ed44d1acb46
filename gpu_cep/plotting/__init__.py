"""What is drawn of a run: its matches, over the series that they were found in, and what each stage let through."""

from gpu_cep.pictures import Picture
from gpu_cep.plotting.timeline import Timeline, plot
from gpu_cep.plotting.waterfall import waterfall

__all__ = ["Picture", "Timeline", "plot", "waterfall"]
