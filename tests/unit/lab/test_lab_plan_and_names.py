"""Address plan, names, shaping figures, scale: everything the lab decides before it touches the kernel."""

from __future__ import annotations

from pathlib import Path

import pytest

from stallscope.collective.links import Link, LinkProfile, gbit
from stallscope.collective.workload import Workload
from stallscope.errors import LabError
from stallscope.lab.names import write_names
from stallscope.lab.plan import LoopPlan, Quirks, bucket_count, plan_from_json
from stallscope.lab.shaper import burst, queue
from stallscope.lab.step import bucket_sizes
from stallscope.lab.topology import LabPod, LabSpec, plan
from stallscope.lab.workload import choose_scale

SPEC = LabSpec(
    pods=(
        LabPod(name="a", node="n1", host_names=("a.svc", "a-*")),
        LabPod(name="b", node="n1"),
        LabPod(name="c", node="n3"),
    ),
    zones={"n1": "z1", "n2": "z1", "n3": "z2"},
)


def test_addresses_follow_zone_node_and_pod() -> None:
    made = plan(SPEC)
    assert dict(made.ips) == {"a": "10.1.1.2", "b": "10.1.1.3", "c": "10.2.1.2"}
    assert [z.prefix for z in made.zones] == ["10.1.0.0", "10.2.0.0"]
    assert [n.name for n in made.nodes] == ["n1", "n3"]  # an unused node is not built


def test_too_many_pods_on_a_node_is_one_clear_line() -> None:
    pods = tuple(LabPod(name=f"p{i}", node="n") for i in range(251))
    with pytest.raises(LabError, match="node n has 251 pods"):
        plan(LabSpec(pods=pods, zones={"n": "z"}))


def test_hosts_answer_as_the_headless_services_would_or_not_at_all(tmp_path: Path) -> None:
    files = write_names(tmp_path, SPEC, plan(SPEC).ips)
    hosts = Path(files["/etc/hosts"]).read_text()
    assert "10.1.1.2 a.svc a\n" in hosts  # a name with a random tail is no name
    assert "10.2.1.2 c\n" in hosts
    assert "nameserver" not in Path(files["/etc/resolv.conf"]).read_text()  # nothing leaves the machine
    write_names(tmp_path, SPEC, plan(SPEC).ips, broken=True)
    assert Path(files["/etc/hosts"]).read_text() == "127.0.0.1 localhost\n"


def test_buckets_and_queues() -> None:
    """2.5 ms of a 40 MB/s link are 100 kB; a queue is a tenth of a second; slow links keep two full frames."""
    assert burst(40_000_000) == 100_000
    assert burst(1000) >= 2 * 1500
    assert queue(40_000_000) == 4_000_000


def test_gradients_are_split_as_ddp_would_up_to_a_few_pieces() -> None:
    assert bucket_count(10e6, 4) == 1
    assert bucket_count(52e6, 4) == 2  # 25 MiB buckets
    assert bucket_count(14e9, 8) == 4
    assert bucket_count(14e9, 32) == 1
    assert bucket_sizes(1_000_001, 2) == [500_000, 500_000]
    assert bucket_sizes(1, 4) == [4, 4, 4, 4]


def test_a_loop_plan_survives_the_wire() -> None:
    made = LoopPlan(compute_seconds=0.1, gradient_bytes=5, quirks=Quirks(burners=2, desync_step=3))
    assert plan_from_json(made.to_json()) == made


def test_one_factor_for_rates_and_one_for_times() -> None:
    """
    5 ranks, 4 GB/s in a zone, S = 10 GB: ring 1.6 x 10 / 4 = 4 s; with 6 s compute a step is 10 s. The machine carries
    160 MB/s a ring edge, a quarter of it is 40 MB/s: rates 1:100. The step becomes 0.3 s: times 1:33.3.
    """
    link = Link(bandwidth=4e9, latency=0)
    profile = LinkProfile(name="p", node=link, zone=link, cross_zone=Link(bandwidth=gbit(4), latency=0))
    scale = choose_scale(Workload(gradient_bytes=10e9, compute_seconds=6.0, inputs=()), profile, 5, 160e6)
    assert scale.rate == pytest.approx(100)
    assert scale.time == pytest.approx(10 / 0.3)


PROFILES = sorted((Path(__file__).resolve().parents[3] / "examples/profiles").glob("*.yaml"))


@pytest.mark.parametrize("path", PROFILES, ids=lambda p: p.stem)
def test_the_example_profiles_are_read_and_cite_their_figures(path: Path) -> None:
    import yaml

    from stallscope.collective.profile import profile_from_body

    body = yaml.safe_load(path.read_text())
    profile = profile_from_body(body, where=path.name)
    assert profile.zone.bandwidth > profile.cross_zone.bandwidth
    assert all(link["source"] for link in body["links"].values())


def test_the_written_out_default_is_the_default() -> None:
    import yaml

    from stallscope.collective.links import DEFAULT_PROFILE, LinkClass
    from stallscope.collective.profile import profile_from_body

    path = next(p for p in PROFILES if p.stem == "default")
    written = profile_from_body(yaml.safe_load(path.read_text()), where="x")
    for kind in LinkClass:
        assert written.link(kind).bandwidth == DEFAULT_PROFILE.link(kind).bandwidth
        assert written.link(kind).latency == pytest.approx(DEFAULT_PROFILE.link(kind).latency)
