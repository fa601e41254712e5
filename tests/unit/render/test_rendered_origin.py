"""A finding in rendered text names the file a person can change, in every format (Helm: # Source, kustomize: origin)."""

from __future__ import annotations

from pathlib import Path

import pytest

from stallscope.cli.main import run
from stallscope.cli.options import FORMATS

INCIDENT = Path(__file__).parents[3] / "examples" / "incident"


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_names_the_template(form: str, tmp_path: Path) -> None:
    rendered = "".join(
        f"---\n# Source: llm/templates/{n}\n{(INCIDENT / n).read_text()}\n" for n in ("job.yaml", "policy.yaml")
    )
    (tmp_path / "out.yaml").write_text(rendered)
    assert run(["check", str(tmp_path / "out.yaml"), "--no-config", "-q", "-o", f"{form}={tmp_path}/report"]) == 1
    report = (tmp_path / "report").read_text()
    assert "llm/templates/job.yaml" in report
    assert "llm/templates/policy.yaml" in report
