"""Options that several verbs share, under kubectl's names where kubectl has one. `@inputs` gives a verb all of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import click

from stallscope.errors import UsageError

if TYPE_CHECKING:
    from stallscope.judge.inputs import ClusterFacts

F = TypeVar("F", bound=Callable[..., Any])

CNIS = ("cilium", "calico", "ovn", "antrea", "generic", "none")
SEVERITIES = ("error", "warning", "info")
FIX_FORMATS = ("diff", "json", "kustomize", "jsonpatch")
FORMATS = ("text", "short", "json", "sarif", "junit", "github", "gitlab", "md")
_VERSION = re.compile(r"v?(\d+(?:\.\d+){0,2})(?:[-+].*)?\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class InputOptions:
    """What to read and what is known about the cluster, as the user said it. `paths` may hold ``-`` once."""

    paths: tuple[str, ...] = ()
    stdin_name: str = ""
    nodes: tuple[str, ...] = ()
    namespace: str = ""
    cni: str = ""
    k8s_version: str = ""
    cilium_option: tuple[str, ...] = ()

    def again(self) -> str:
        """These options as arguments of a shell command, shortened where they are long."""
        import shlex

        paths = shlex.join(self.paths)
        flags = [("--nodes", n) for n in self.nodes] + [("--cilium-option", o) for o in self.cilium_option]
        flags += [(f, v) for f, v in (("-n", self.namespace), ("--cni", self.cni), ("--k8s-version", self.k8s_version)) if v]
        shown = " ".join([paths if len(paths) <= 80 else "PATH…", *(shlex.join(f) for f in flags)])
        return shown if len(shown) <= 160 else "PATH…"

    def facts(self) -> ClusterFacts:
        """The stated facts. Raises UsageError for a value that is none."""
        from stallscope.judge.inputs import ClusterFacts

        name, version = parse_cni(self.cni)
        options = tuple(parse_pair(o) for o in self.cilium_option)
        facts = ClusterFacts(cni=name, cni_version=version, cilium_options=options)
        if not self.k8s_version:
            return facts
        return replace(facts, kubernetes_version=parse_version(self.k8s_version, "--k8s-version"))


def parse_version(text: str, flag: str) -> tuple[int, ...]:
    """``v1.18.7`` -> (1, 18, 7); a build suffix is dropped. Raises UsageError."""
    match = _VERSION.match(text)
    if match is None:
        raise UsageError(f"{flag}: {text!r} is no version", hint="write it like 1.31 or 1.31.4")
    return tuple(map(int, match[1].split(".")))


def parse_cni(text: str) -> tuple[str, tuple[int, ...]]:
    """``cilium@1.18.7`` -> ("cilium", (1, 18, 7)); empty text means: detect. Raises UsageError."""
    name, _, version = text.partition("@")
    if name and name not in CNIS:
        raise UsageError(f"--cni: unknown network plugin {name!r}", hint=f"one of {', '.join(CNIS)}; e.g. cilium@1.18.7")
    return name, parse_version(version, "--cni") if version else ()


def parse_pair(text: str) -> tuple[str, str]:
    """``enable-policy=always`` -> its two halves. Raises UsageError."""
    key, sign, value = text.partition("=")
    if not (key.strip() and sign):
        raise UsageError(f"--cilium-option: {text!r} is not key=value", hint="e.g. --cilium-option enable-policy=always")
    return key.strip(), value.strip()


def split_commas(values: tuple[str, ...]) -> tuple[str, ...]:
    """``("a,b", "c")`` -> a, b, c."""
    return tuple(part.strip() for value in values for part in value.split(",") if part.strip())


def inputs(function: F) -> F:
    """Give a verb the input options; it receives them as one `options: InputOptions`, and the config file's defaults."""
    from functools import update_wrapper

    def wrapped(**given: Any) -> Any:
        paths = tuple(given.pop("paths")) + tuple(given.pop("filename"))
        named = {name: given.pop(name) for name in _NAMED}
        given.pop("config"), given.pop("no_config")
        return function(options=InputOptions(paths=paths, **named), **given)

    command: Any = update_wrapper(wrapped, function)
    for decorate in reversed(_INPUT_OPTIONS):
        command = decorate(command)
    return command  # type: ignore[no-any-return]


def _configured(ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
    """Read the config file before the other options get their defaults from it (this option is eager)."""
    if ctx.resilient_parsing or ctx.params.get("no_config"):
        return value
    from stallscope.cli.settings import config_defaults

    names = {p.name for p in ctx.command.params if p.name}
    ctx.default_map = {**(ctx.default_map or {}), **config_defaults(value, names)}
    return value


_NAMED = ("stdin_name", "nodes", "namespace", "cni", "k8s_version", "cilium_option")

_INPUT_OPTIONS: tuple[Callable[[Any], Any], ...] = (
    click.argument("paths", nargs=-1, metavar="PATH…", type=click.Path(readable=False)),
    click.option("-f", "--filename", multiple=True, metavar="PATH", help="A file or directory to read; may repeat."),
    click.option("--stdin-name", metavar="NAME", default="", help="What to call the input of `-` in the report."),
    click.option(
        "--nodes", multiple=True, metavar="FILE", type=click.Path(readable=False), envvar="STALLSCOPE_NODES",
        help="The cluster's nodes: `kubectl get nodes -o yaml`, or a kind config; may repeat.",
    ),
    click.option(
        "-n", "--namespace", metavar="NAME", default="", envvar="STALLSCOPE_NAMESPACE",
        help="Namespace of objects that name none.",
    ),
    click.option(
        "--cni", metavar="NAME[@VERSION]", default="", envvar="STALLSCOPE_CNI",
        help=f"Network plugin ({', '.join(CNIS)}); else found from the objects.",
    ),
    click.option(
        "--k8s-version", metavar="VERSION", default="", envvar="STALLSCOPE_K8S_VERSION", help="Kubernetes version.",
    ),
    click.option("--cilium-option", multiple=True, metavar="KEY=VALUE", help="A Cilium agent option; may repeat."),
    click.option("--no-config", is_flag=True, is_eager=True, help="Read no config file."),
    click.option(
        "--config", metavar="FILE", is_eager=True, callback=_configured, envvar="STALLSCOPE_CONFIG",
        help="Config file; else stallscope.yaml, .stallscope.yaml or pyproject.toml up to the repository's root.",
    ),
)  # fmt: skip

color_option = click.option(
    "--color", type=click.Choice(["auto", "always", "never"]), default="auto", show_default=True,
    help="Colours; auto heeds NO_COLOR and FORCE_COLOR.",
)  # fmt: skip
quiet_option = click.option("-q", "--quiet", is_flag=True, help="No summary and no progress on stderr.")
no_progress_option = click.option("--no-progress", is_flag=True, help="No progress line on stderr.")


def output_of(*formats: str) -> Callable[[F], F]:
    """The -o option of a verb with these formats."""
    return click.option(
        "-o", "--output", "output", multiple=True, metavar="FORMAT[=FILE]",
        help=f"{', '.join(formats)}; with =FILE into a file. May repeat.",
    )  # fmt: skip
