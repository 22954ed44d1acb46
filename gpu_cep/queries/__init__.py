"""Plan queries over given events, and run the plans, at once or slice of time by slice of time."""
