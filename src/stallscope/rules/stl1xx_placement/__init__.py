"""Where a job can land, and who cannot run at all."""
