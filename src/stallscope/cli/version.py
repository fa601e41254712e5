"""``version``: what to paste into a bug report."""

from __future__ import annotations

import click


@click.command()
def command() -> int:
    """Print the version and what it runs on."""
    import platform

    from stallscope import __version__
    from stallscope.cli.console import write

    write(f"stallscope {__version__} (Python {platform.python_version()}, {platform.system()} {platform.machine()})\n")
    return 0
