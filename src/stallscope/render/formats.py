"""The formats by name, each imported only when it is asked for."""

from __future__ import annotations

from stallscope.render.report import Look, Report, SourceCache

FORMATS = ("text", "short", "json", "sarif", "junit", "github", "gitlab", "md")


def render(name: str, report: Report, sources: SourceCache, look: Look) -> str:
    """The report in one of `FORMATS`. Raises KeyError for another name."""
    if name == "text":
        from stallscope.render import text

        return text.render(report, sources, look)
    if name == "md":
        from stallscope.render import markdown

        return markdown.render(report, sources, look)
    return _for_machines(name, report)


def _for_machines(name: str, report: Report) -> str:
    from importlib import import_module

    modules = {n: n for n in FORMATS} | {"json": "json_"}
    result = import_module(f"stallscope.render.{modules[name]}").render(report)
    assert isinstance(result, str)  # noqa: S101  a renderer's contract
    return result
