"""
The errors a user can meet. Each carries what happened, where, and what to do; the CLI prints them without a traceback.
"""

from __future__ import annotations


class StallscopeError(Exception):
    """
    Base of every expected error.

    `message` says what and where (``file:line: text``), `hint` what to do, `exit_code` is what the process returns.
    """

    exit_code = 2

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(StallscopeError):
    """The command line or the configuration asks for something impossible."""


class LoadError(StallscopeError):
    """An input cannot be read at all: missing, too large, not text, not YAML."""


class NothingToCheck(StallscopeError):
    """The inputs hold nothing that Stallscope judges; never reported as success."""

    exit_code = 3


class PatchRefused(StallscopeError):
    """A text edit would touch something shared or could not be proved; the hint holds the snippet to paste by hand."""


class ClusterError(StallscopeError):
    """A cluster, a snapshot of one, or a tool that talks to one did not answer usefully."""


class LabError(StallscopeError):
    """The pocket cluster cannot be built, or measured something that contradicts the judgement."""
