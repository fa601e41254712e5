"""
Mutated manifests through the whole pipeline: text -> load -> judge and rules (-> fix). No traceback, memory bounded.

    python tests/bench/fuzz.py [--inputs 1000] [--seed 1] [--only INDEX] [--depth load|analyse|fix]

Seeds are the repository's examples and, where it lies beside the repository, the corpus of real manifests. A quarter of the
mutations change the text (bytes, lines, indentation), the rest the tree (a value of another type, somewhere). The same seed
gives the same inputs. Each input is judged together with a job, policies and nodes, so that every layer sees it. Exits 1
when an exception other than the program's own comes out; the first of each sort is printed with the input to repeat it.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import sys
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

import yaml

from stallscope.analysis import analyse
from stallscope.errors import StallscopeError
from stallscope.load.inputs import load_text
from stallscope.load.stream import parse_stream
from stallscope.remedy.model import Choices
from stallscope.remedy.rounds import fix

ROOT = Path(__file__).resolve().parents[2]
CORPUS = ROOT.parent / "shared" / "corpus"
VECTORS = ROOT.parent / "shared" / "vectors"
LARGEST = 40_000  # characters of a seed; larger ones only make it slow
MEMORY = 2 << 30

NODES = "".join(
    f"---\napiVersion: v1\nkind: Node\nmetadata:\n  name: n{i}\n  labels: {{topology.kubernetes.io/zone: z{i % 3}}}\n"
    f"status: {{allocatable: {{cpu: '96', memory: 1Ti, nvidia.com/gpu: '8', pods: '110'}}}}\n"
    for i in range(6)
)
POLICIES = """\
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: default-deny}
spec: {podSelector: {}, policyTypes: [Ingress, Egress]}
---
apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: {name: master-port}
spec:
  endpointSelector: {}
  ingress:
  - fromEndpoints: [{}]
    toPorts: [{ports: [{port: "23456", protocol: TCP}]}]
"""

JOB = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: standing}
spec:
  pytorchReplicaSpecs:
    Master: {replicas: 1, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: pytorch, image: x}]}}}
    Worker: {replicas: 2, template: {spec: {containers: [{name: pytorch, image: x, resources: {limits: {cpu: 8}}}]}}}
"""

LONG = "a" * 300
ODD: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 3, 10**6, 2**31 - 1, 2**31, 2**63, -(2**63), 0.5, 1e308, -0.0, 1e-9),
    *("", " ", "a", "-1", "0", "1e9", "0x10", "\u0661", LONG, "nan", "a=b,c", "%", "../..", "10.0.0.0/99", "::/0", "$(A)"),
    *([], {}, [None, 5, "x", [], {}], {"": None, "a": {"b": []}}, [[[]]], [{}], {"matchLabels": {"a": 1}}),
)


def seeds() -> list[tuple[str, str]]:
    files = sorted((ROOT / "examples").rglob("*.y*ml")) + (sorted(CORPUS.rglob("*.y*ml")) if CORPUS.is_dir() else [])
    texts = [(f.relative_to(ROOT.parent).as_posix(), f.read_text(encoding="utf-8", errors="replace")) for f in files]
    texts += [(f"vectors/{name}", policies) for name, policies in vector_policies()]
    usable = [(name, text) for name, text in texts if len(text) <= LARGEST]
    jobs = [(name, text) for name, text in usable if load_text({name: text}).jobs]
    return usable + jobs * (3 * len(usable) // max(len(jobs), 1))  # most inputs should reach the judgement


def vector_policies() -> list[tuple[str, str]]:
    """The policies of the conformance vectors, where they lie beside the repository, moved to the job's namespace."""
    found = []
    for file in sorted(VECTORS.glob("*/*.jsonl")):
        for line in file.read_text().splitlines()[:150]:
            scenario = json.loads(line)
            bodies = [b for b in scenario.get("policies") or [] if isinstance(b, dict)]
            for body in bodies:
                body.get("metadata", {}).pop("namespace", None)
            if bodies:
                found.append((str(scenario.get("name")), yaml.dump_all(bodies, Dumper=yaml.CSafeDumper, sort_keys=False)))
    return found


def mutate_text(text: str, rng: random.Random) -> str:
    lines = text.split("\n")
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        at = rng.randrange(len(lines))
        match rng.randrange(9):
            case 0:
                del lines[at : at + rng.randint(1, 3)]
            case 1:
                lines[at:at] = lines[at : at + rng.randint(1, 5)]
            case 2:
                lines[at] = " " * rng.randint(0, 6) + lines[at].lstrip()
            case 3:
                lines[at] = flip(lines[at], rng)
            case 4:
                other = rng.randrange(len(lines))
                lines[at], lines[other] = lines[other], lines[at]
            case 5:
                lines[at] = lines[at][: rng.randint(0, len(lines[at]))]
            case 6:
                lines.insert(
                    at,
                    rng.choice(
                        ["---", "...", "\t- x", "a: &a [*a]", "<<: *x", "? [x]", "{{ x }}", "%TAG ! x", "- !!binary x"]
                    ),
                )
            case 7:
                key, colon, _ = lines[at].partition(":")
                lines[at] = (
                    key
                    + colon
                    + " "
                    + rng.choice(["", "null", "[]", "{}", "-1", "yes", ".inf", "|", ">-", "'", '"', "*a", "&b"])
                )
            case _:
                lines = lines[: rng.randint(1, len(lines))]
        lines = lines or [""]
    return "\n".join(lines)


def flip(line: str, rng: random.Random) -> str:
    if not line:
        return chr(rng.choice([0, 7, 9, 13, 0x85, 0xFEFF, 0xD800, 0x1F600]))
    at = rng.randrange(len(line))
    return line[:at] + chr(ord(line[at]) ^ (1 << rng.randrange(8))) + line[at + 1 :]


def mutate_tree(text: str, rng: random.Random) -> str:
    """Values of other types at random places of the documents, written out again. Text that is no YAML stays as it is."""
    documents, _ = parse_stream(text)
    values = [d.value for d in documents if d.value is not None]
    trees = [plain(v) for v in values]
    if not trees:
        return text
    for _ in range(rng.randint(1, 3)):
        change(trees, rng)
    try:
        return yaml.dump_all(trees, Dumper=yaml.CSafeDumper, sort_keys=False, default_flow_style=rng.choice([False, None]))
    except yaml.YAMLError:
        return text


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    return [plain(v) for v in value] if isinstance(value, list) else value


def change(trees: list[Any], rng: random.Random) -> None:
    """Go down at random and change what is there: most changes should be deep, where the meaning is."""
    node: Any = trees
    while True:
        keys = list(node) if isinstance(node, dict) else range(len(node))
        if not keys:
            return
        deeper = [k for k in keys if isinstance(node[k], dict | list) and node[k]]
        if deeper and rng.random() < 0.94:
            node = node[rng.choice(deeper)]
            continue
        key = rng.choice(list(keys))
        below = node[key]
        match rng.randrange(8):
            case 0:
                del node[key]
            case 1 if isinstance(node, list):
                node.append(plain(below))
            case 2 if isinstance(node, dict):
                node[rng.choice(["replicas", "spec", "x" * 70, "", "template", "key"])] = node.pop(key)
            case 3:
                node[key] = [below]
            case 4:
                node[key] = {"a": below}
            case 5 if isinstance(below, str | int):
                node[key] = str(below) if isinstance(below, int) else f"{below}{below}"
            case _:
                node[key] = plain(rng.choice(ODD))
        return


def make(index: int, seed: int, sources: list[tuple[str, str]]) -> tuple[str, str]:
    rng = random.Random(f"{seed}/{index}")
    name, text = rng.choice(sources)
    if index % 4 and (changed := mutate_tree(text, rng)) is not text:
        return name, changed
    return name, mutate_text(text, rng)


def run(text: str, depth: str) -> Counter[str]:
    texts = {"fuzz.yaml": text, "job.yaml": JOB, "nodes.yaml": NODES, "policies.yaml": POLICIES}
    inputs = load_text(texts)
    counts = Counter({"objects": len(inputs.objects), "jobs": len(inputs.jobs), "problems": len(inputs.problems)})
    if depth == "load":
        return counts
    analysis = analyse(inputs)
    counts["findings"] = len(analysis.findings)
    if depth == "fix" and analysis.findings:
        fixed = fix(texts, analysis, lambda now: analyse(load_text(now)), parse, Choices())
        counts["remedies"] = len(fixed.remedies)
    return counts


def parse(text: str) -> list[Any]:
    """Documents by index, None for unreadable ones."""
    values = {d.index: d.value for d in parse_stream(text)[0]}
    return [values.get(i) for i in range(max(values, default=-1) + 1)]


def signature(error: BaseException) -> str:
    """Where it came out: enough to tell one fault from another."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} at {Path(frame.filename).name}:{frame.lineno} {frame.line}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", "--count", type=int, default=1_000, help="`make fuzz` runs 10,000")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="print this one input, and run it")
    parser.add_argument("--depth", choices=["load", "analyse", "fix"], default="analyse")
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    sources = seeds()
    if options.only is not None:
        name, text = make(options.only, options.seed, sources)
        print(f"# from {name}\n{text}")
        print(run(text, options.depth))
        return 0
    total, faults, examples, slowest = Counter[str](), Counter[str](), dict[str, tuple[int, str]](), (0.0, -1)
    started = time.process_time()
    for index in range(options.inputs):
        name, text = make(index, options.seed, sources)
        began = time.process_time()
        try:
            total += run(text, options.depth)
        except StallscopeError:
            total["refused"] += 1
        except Exception as error:
            sort = signature(error)
            faults[sort] += 1
            if sort not in examples:
                examples[sort] = (index, name)
                print(f"\n{sort}\n    input {index}, from {name}", file=sys.stderr)
                traceback.print_exc(limit=-6)
        slowest = max(slowest, (time.process_time() - began, index))
    peak = int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) / 1024
    print(
        f"inputs     {options.inputs:,} from {len(set(sources))} files, seed {options.seed}, to the depth of {options.depth}"
    )
    print("seen       " + ", ".join(f"{count:,} {what}" for what, count in total.items()))
    print(f"CPU        {time.process_time() - started:.0f} s; slowest input {slowest[1]}: {slowest[0]:.2f} s")
    print(f"memory     {peak:.0f} MiB at its peak, of {MEMORY >> 20} MiB allowed")
    print(f"faults     {sum(faults.values())} of {len(faults)} sorts")
    for sort, count in faults.most_common():
        print(f"  {count:6} {sort}   first: --only {examples[sort][0]}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
