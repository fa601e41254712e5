"""``python -m stallscope``."""

from __future__ import annotations

from stallscope.cli.main import main

if __name__ == "__main__":
    main()
