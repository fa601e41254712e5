"""The options behind the modelled figures: gradient bytes, compute time, link profile, price of cross-zone traffic."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from stallscope.errors import UsageError

if TYPE_CHECKING:
    from stallscope.collective.links import EgressPrice, LinkProfile
    from stallscope.judge.price import PriceFacts

F = TypeVar("F", bound=Callable[..., Any])
CLOUDS = ("aws", "gcp", "azure")

_OPTIONS: tuple[Callable[[Any], Any], ...] = (
    click.option("--gradient-bytes", metavar="SIZE", default="", help="Bytes all-reduced a step, e.g. 14GB (model input)."),
    click.option("--compute-ms", metavar="MS", type=float, default=0.0, help="Compute of a step without communication."),
    click.option("--overlap", metavar="SHARE", type=float, default=0.0, help="Share of communication hidden, 0 to 1."),
    click.option(
        "--algorithm", type=click.Choice(["ring", "tree"]), default="ring", show_default=True,
        help="The all-reduce that is modelled.",
    ),
    click.option("--links", metavar="FILE", default="", type=click.Path(), help="Link profile: rates and delays a class."),
    click.option(
        "--egress-price", metavar="CLOUD|$/GB", default="", envvar="STALLSCOPE_EGRESS_PRICE",
        help=f"Price of cross-zone traffic: {', '.join(CLOUDS)} or dollars per GB.",
    ),
)  # fmt: skip
_NAMES = ("gradient_bytes", "compute_ms", "overlap", "algorithm", "links", "egress_price")


def prices(function: F) -> F:
    """Give a verb the options above; it receives them as one `prices: PriceFacts`."""
    from functools import update_wrapper

    def wrapped(**given: Any) -> Any:
        stated = {name: given.pop(name) for name in _NAMES}
        return function(prices=facts(**stated), **given)

    command: Any = update_wrapper(wrapped, function)
    for decorate in reversed(_OPTIONS):
        command = decorate(command)
    return command  # type: ignore[no-any-return]


def facts(
    *, gradient_bytes: str, compute_ms: float, overlap: float, algorithm: str, links: str, egress_price: str
) -> PriceFacts:
    """The stated facts. Raises UsageError for a figure that is none."""
    from stallscope.collective.cost import Algorithm
    from stallscope.collective.links import DEFAULT_PROFILE
    from stallscope.collective.profile import parse_bytes
    from stallscope.judge.price import PriceFacts

    size = parse_bytes(gradient_bytes) if gradient_bytes else None
    if gradient_bytes and not size:
        raise UsageError(f"--gradient-bytes: '{gradient_bytes}' is no size", hint="for example 14GB or 2.5GiB")
    if not 0 <= overlap <= 1:
        raise UsageError(f"--overlap: {overlap:g} is not a share", hint="0 (none hidden) to 1 (all hidden)")
    if compute_ms < 0:
        raise UsageError(f"--compute-ms: {compute_ms:g} is negative", hint="milliseconds of compute in one step")
    return PriceFacts(
        gradient_bytes=size,
        compute_seconds=compute_ms / 1000 or None,
        overlap=overlap,
        algorithm=Algorithm(algorithm),
        profile=read_profile(links) if links else DEFAULT_PROFILE,
        egress=_egress(egress_price),
    )


def read_profile(path: str) -> LinkProfile:
    """The link profile in a YAML or JSON file. Raises UsageError naming the file and the part."""
    from stallscope.collective.profile import profile_from_body
    from stallscope.load.stream import parse_stream

    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "not UTF-8"
        raise UsageError(f"--links: cannot read {path}: {why}", hint="a YAML file with 'links'; see docs/cost.md") from None
    documents, problems = parse_stream(text, file=path)
    if problems:
        raise UsageError(f"{problems[0].location}: {problems[0].message}", hint=problems[0].hint)
    bodies = [d.value for d in documents if d.value is not None]
    if len(bodies) != 1:
        raise UsageError(f"{path}: expected one document, found {len(bodies)}", hint="one profile a file")
    return profile_from_body(bodies[0], where=path)


def _egress(text: str) -> EgressPrice | None:
    from stallscope.collective.links import EGRESS_PRICES, EgressPrice

    if not text:
        return None
    if text in EGRESS_PRICES:
        return EGRESS_PRICES[text]
    try:
        price = float(text.removeprefix("$"))
    except ValueError:
        price = -1.0
    if not 0 <= price < 1000:
        raise UsageError(f"--egress-price: '{text}' is no price", hint=f"{', '.join(CLOUDS)} or dollars per GB, e.g. 0.02")
    return EgressPrice(name=f"${price:g}/GB", per_gb=price, source="stated by --egress-price")
