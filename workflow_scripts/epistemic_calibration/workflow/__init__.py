"""What the workflow is made of: configuration, plan, provenance, ledger, and the step of a job."""
