"""What the scheduler reads besides pods and nodes reaches the placement of a job."""

from __future__ import annotations

from stallscope.analysis import analyse
from stallscope.judge.result import Answer
from stallscope.judge.surroundings import surroundings
from stallscope.load.inputs import load_text
from stallscope.model.kube import from_body

JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: train, namespace: ml}
spec:
  completionMode: Indexed
  completions: 2
  parallelism: 2
  template:
    spec:
      subdomain: train
      restartPolicy: Never
      containers:
        - name: c
          image: i
          command: [torchrun, t.py]
          env: [{name: MASTER_ADDR, value: train-0.train}]
          resources: {limits: {nvidia.com/gpu: 8}}
      volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
"""
CLAIM = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: ml}
spec: {volumeName: disk, accessModes: [ReadOnlyMany]}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: disk}
spec:
  nodeAffinity:
    required:
      nodeSelectorTerms:
        - matchExpressions: [{key: topology.kubernetes.io/zone, operator: In, values: [zone-b]}]
"""


def nodes():
    return "---".join(
        f"""
apiVersion: v1
kind: Node
metadata: {{name: {zone}{i}, labels: {{kubernetes.io/hostname: {zone}{i}, topology.kubernetes.io/zone: zone-{zone}}}}}
status: {{allocatable: {{cpu: "96", memory: 1Ti, pods: "110", nvidia.com/gpu: "8"}}}}
"""
        for zone in "ab"
        for i in range(2)
    )


def test_a_zonal_volume_pins_the_job():
    """VolumeBinding: a bound volume's node affinity restricts every pod that mounts it."""
    loose = JOB.replace("      volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]\n", "")
    (free,) = analyse(load_text({"a.yaml": "---".join((loose, nodes()))})).judgement.jobs
    (pinned,) = analyse(load_text({"a.yaml": "---".join((JOB, CLAIM, nodes()))})).judgement.jobs
    assert free.can_split is Answer.YES
    assert pinned.can_split is Answer.NO
    assert pinned.placement is not None
    assert pinned.placement.zone_sets == (frozenset({"zone-b"}),)


def test_services_of_the_namespace_are_owners():
    def service(namespace):
        body = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s", "namespace": namespace}}
        return from_body({**body, "spec": {"selector": {"app": "x"}}})

    found = surroundings([service("ml"), service("web")])
    assert [(o.namespace, dict(o.selector)) for o in found.services] == [("ml", {"app": "x"}), ("web", {"app": "x"})]


CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - pluginConfig:
      - name: PodTopologySpread
        args:
          defaultingType: List
          defaultConstraints: [{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule}]
"""
SERVICE = """
apiVersion: v1
kind: Service
metadata: {name: train, namespace: ml}
spec: {clusterIP: None, selector: {batch.kubernetes.io/job-name: train}}
"""


def test_hard_spread_defaults_of_the_scheduler_split_a_job_its_service_selects():
    """PodTopologySpreadArgs.defaultConstraints: two pods, two zones, maxSkew 1 leave one pod a zone and nothing else."""
    loose = JOB.replace("      volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]\n", "")
    (soft,) = analyse(load_text({"a.yaml": "---".join((loose, SERVICE, nodes()))})).judgement.jobs
    (hard,) = analyse(load_text({"a.yaml": "---".join((loose, SERVICE, nodes(), CONFIG))})).judgement.jobs
    assert frozenset({"zone-a"}) in soft.placement.zone_sets
    assert hard.placement.zone_sets == (frozenset({"zone-a", "zone-b"}),)
