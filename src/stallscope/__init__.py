"""Stallscope makes silent training stalls loud. Importing this package imports nothing else."""

__version__ = "0.1.0"
