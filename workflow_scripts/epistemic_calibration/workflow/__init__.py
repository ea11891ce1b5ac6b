"""What the workflow is made of: configuration, plan, provenance, and the step of a job."""
