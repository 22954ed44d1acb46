"""Make the events and questions that are measured."""
