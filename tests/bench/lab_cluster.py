"""How fast a pocket cluster is up (built and shaped) and down. Goals: 5 pods <= 0.3 s, 128 pods <= 2 s."""

from __future__ import annotations

import sys
import time
from statistics import median

from stallscope.collective.links import Link
from stallscope.errors import LabError
from stallscope.lab.netns import build
from stallscope.lab.shaper import Shape, features, shape
from stallscope.lab.topology import LabPod, LabSpec

SIZES = ((5, 3), (32, 8), (128, 16), (512, 64))
RUNS = 5


def spec(pods: int, nodes: int) -> LabSpec:
    return LabSpec(
        pods=tuple(LabPod(name=f"pod-{i}", node=f"node-{i % nodes}") for i in range(pods)),
        zones={f"node-{i}": f"zone-{i % 3}" for i in range(nodes)},
    )


def main() -> None:
    try:
        features()
    except (OSError, LabError) as error:
        print(f"skipped: no namespaces here ({error})")
        sys.exit(0)
    wanted = Shape(zone=Link(bandwidth=1e8, latency=0), cross_zone=Link(bandwidth=1e7, latency=0))
    print(f"{'pods/nodes':>12} {'links up':>10} {'shaped':>10} {'down':>10}   median of {RUNS}, seconds")
    for pods, nodes in SIZES:
        up, shaped, down = [], [], []
        for _ in range(RUNS):
            start = time.perf_counter()
            cluster = build(spec(pods, nodes))
            up.append(time.perf_counter() - start)
            shape(cluster, wanted)
            shaped.append(time.perf_counter() - start)
            start = time.perf_counter()
            cluster.close()
            down.append(time.perf_counter() - start)
        print(f"{f'{pods}/{nodes}':>12} {median(up):10.3f} {median(shaped):10.3f} {median(down):10.3f}")


if __name__ == "__main__":
    main()
