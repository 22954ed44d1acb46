"""Cut streams into slices of time that tasks match apart, and choose whether and how."""
