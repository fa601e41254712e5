"""The config file as defaults of a verb's options: flags win over the environment, which wins over the file."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any


def config_defaults(named: str | None, parameters: Collection[str]) -> dict[str, Any]:
    """
    Values by parameter name for those of `parameters` that the config file sets. `named` is the file given by the user;
    None: look for one. Raises UsageError for a file that is missing or wrong.
    """
    path = Path(named) if named else _nearest()
    if path is None:
        return {}
    from stallscope.load.config import read_config

    values = read_config(path).values
    by_parameter = {key.replace("-", "_"): value for key, value in values.items()}
    return {name: value for name, value in by_parameter.items() if name in parameters}


def _nearest() -> Path | None:
    from stallscope.load.config import find_config

    try:
        return find_config(Path.cwd())
    except FileNotFoundError:  # the working directory was deleted
        return None
