"""
Talking to the cluster through the user's kubectl: their context, their credentials, their audit trail.

Everything goes through one function, so that tests answer from recordings.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from stallscope.errors import ClusterError

SECONDS = 180.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What one call gave."""

    code: int
    out: str
    err: str = ""


class Kubectl(Protocol):
    """Run kubectl with `words`, `text` on its standard input."""

    def __call__(self, words: Sequence[str], text: str = "", /) -> Answer: ...


def real_kubectl(context: str = "", kubeconfig: str = "") -> Kubectl:
    """kubectl as installed. Raises ClusterError when it is not, or does not answer in time."""
    base = ["kubectl"]
    base += ["--context", context] if context else []
    base += ["--kubeconfig", kubeconfig] if kubeconfig else []

    def call(words: Sequence[str], text: str = "", /) -> Answer:
        try:
            done = subprocess.run([*base, *words], input=text, text=True, capture_output=True, timeout=SECONDS, check=False)
        except FileNotFoundError:
            raise ClusterError(
                "kubectl is not installed", hint="--backend needs kubectl and a cluster it can reach"
            ) from None
        except subprocess.TimeoutExpired:
            raise ClusterError(f"kubectl {' '.join(words[:3])} did not answer within {SECONDS:.0f} s") from None
        return Answer(done.returncode, done.stdout, done.stderr)

    return call


def complaint(answer: Answer) -> str:
    """What kubectl said last: client-go's retries stand before it."""
    return (answer.err.strip() or answer.out.strip() or "failed").splitlines()[-1]


def must(kubectl: Kubectl, words: Sequence[str], text: str = "") -> str:
    """The output of a call that has to work. Raises ClusterError with kubectl's words."""
    answer = kubectl(words, text)
    if answer.code:
        raise ClusterError(
            f"kubectl {' '.join(words[:3])}: {complaint(answer)}", hint="is this the cluster? see KUBECONFIG and --context"
        )
    return answer.out


def get(kubectl: Kubectl, words: Sequence[str]) -> Mapping[str, Any]:
    """The object of ``get … -o json``. Raises ClusterError."""
    try:
        body = json.loads(must(kubectl, ["get", *words, "-o", "json"]))
    except ValueError as error:
        raise ClusterError(f"kubectl get {' '.join(words)}: the answer is not JSON: {error}") from None
    return body if isinstance(body, Mapping) else {}


def create(kubectl: Kubectl, objects: Sequence[Mapping[str, Any]]) -> None:
    """Create objects, never change any: one that exists already is somebody else's. Raises ClusterError."""
    must(kubectl, ["create", "-f", "-"], json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))
