"""Say what a run may take and what it took: its budget, its profile, the host's memory."""
