"""Tell what the workers of a job did, and how far it has come."""
