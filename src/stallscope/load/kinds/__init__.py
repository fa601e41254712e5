"""Job kinds: from a manifest to the pods, ranks and connections its controller will make. One module a kind."""

from stallscope.load.kinds.expand import expand

__all__ = ["expand"]
