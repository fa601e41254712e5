"""Faults as a library: what can go wrong with a running job, each with its ground truth."""
