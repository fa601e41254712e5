"""Policy dialects -> one rule form -> a verdict with provenance."""
