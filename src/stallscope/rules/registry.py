"""Every rule, as a literal tuple: nothing is found by import side effect."""

from __future__ import annotations

from stallscope.findings import Finding
from stallscope.judge.result import Judgement
from stallscope.rules.base import Rule
from stallscope.rules.stl1xx_placement import (
    stl101_job_can_split,
    stl102_coordinator_cannot_tolerate,
    stl103_role_unschedulable,
    stl104_spread_forces_split,
    stl105_affinity_deadlock,
    stl106_constraint_pins_nothing,
    stl107_zone_labels_missing,
    stl108_zone_lock_in,
    stl109_exclusive_topology_forces_zones,
    stl110_leftover_label,
    stl111_gang_size_mismatch,
    stl112_copies_can_deadlock,
)
from stallscope.rules.stl2xx_reachability import (
    stl201_peer_denied,
    stl202_rendezvous_denied,
    stl203_only_rendezvous_port_open,
    stl204_dns_denied,
    stl205_policy_selects_nothing,
    stl206_mesh_sidecar_without_opt_out,
    stl207_host_network_unjudged,
    stl208_zone_label_policy_inert,
    stl209_policy_rejected,
    stl210_policy_not_enforced,
    stl211_l7_on_collective_ports,
    stl212_identity_explosion,
    stl213_secondary_network_not_judged,
    stl214_webhook_denied,
    stl215_launcher_denied,
    stl216_verdict_depends_on_zone,
    stl217_service_port_denied,
    stl218_api_server_denied,
    stl219_named_port_unresolved,
)
from stallscope.rules.stl3xx_environment import (
    stl301_nccl_interface_trap,
    stl302_shm_too_small,
    stl303_rendezvous_port_mismatch,
    stl304_rendezvous_address_mismatch,
    stl305_timeout_shorter_than_checkpoint,
    stl306_rendezvous_port_in_ephemeral_range,
    stl307_ineffective_nccl_setting,
    stl308_headless_service_missing,
    stl309_host_network_port_clash,
    stl310_memlock_without_root,
    stl311_silent_socket_fallback,
    stl312_fixed_gid_index,
)
from stallscope.rules.stl4xx_observability import (
    stl401_no_collective_telemetry,
    stl402_flight_recorder_lost,
    stl403_metrics_denied,
    stl404_gpu_without_limit,
)
from stallscope.rules.stl5xx_cost import stl501_cross_zone_bill
from stallscope.rules.stl9xx_input import (
    stl901_unreadable_input,
    stl902_unrendered_template,
    stl903_nothing_to_check,
    stl904_duplicate,
    stl905_invalid_job,
    stl906_unsupported_kind,
    stl990_unused_suppression,
)

#: Ordered by id.
RULES: tuple[Rule, ...] = (
    stl101_job_can_split.RULE,
    stl102_coordinator_cannot_tolerate.RULE,
    stl103_role_unschedulable.RULE,
    stl104_spread_forces_split.RULE,
    stl105_affinity_deadlock.RULE,
    stl106_constraint_pins_nothing.RULE,
    stl107_zone_labels_missing.RULE,
    stl108_zone_lock_in.RULE,
    stl109_exclusive_topology_forces_zones.RULE,
    stl110_leftover_label.RULE,
    stl111_gang_size_mismatch.RULE,
    stl112_copies_can_deadlock.RULE,
    stl201_peer_denied.RULE,
    stl202_rendezvous_denied.RULE,
    stl203_only_rendezvous_port_open.RULE,
    stl204_dns_denied.RULE,
    stl205_policy_selects_nothing.RULE,
    stl206_mesh_sidecar_without_opt_out.RULE,
    stl207_host_network_unjudged.RULE,
    stl208_zone_label_policy_inert.RULE,
    stl209_policy_rejected.RULE,
    stl210_policy_not_enforced.RULE,
    stl211_l7_on_collective_ports.RULE,
    stl212_identity_explosion.RULE,
    stl213_secondary_network_not_judged.RULE,
    stl214_webhook_denied.RULE,
    stl215_launcher_denied.RULE,
    stl216_verdict_depends_on_zone.RULE,
    stl217_service_port_denied.RULE,
    stl218_api_server_denied.RULE,
    stl219_named_port_unresolved.RULE,
    stl301_nccl_interface_trap.RULE,
    stl302_shm_too_small.RULE,
    stl303_rendezvous_port_mismatch.RULE,
    stl304_rendezvous_address_mismatch.RULE,
    stl305_timeout_shorter_than_checkpoint.RULE,
    stl306_rendezvous_port_in_ephemeral_range.RULE,
    stl307_ineffective_nccl_setting.RULE,
    stl308_headless_service_missing.RULE,
    stl309_host_network_port_clash.RULE,
    stl310_memlock_without_root.RULE,
    stl311_silent_socket_fallback.RULE,
    stl312_fixed_gid_index.RULE,
    stl401_no_collective_telemetry.RULE,
    stl402_flight_recorder_lost.RULE,
    stl403_metrics_denied.RULE,
    stl404_gpu_without_limit.RULE,
    stl501_cross_zone_bill.RULE,
    stl901_unreadable_input.RULE,
    stl902_unrendered_template.RULE,
    stl903_nothing_to_check.RULE,
    stl904_duplicate.RULE,
    stl905_invalid_job.RULE,
    stl906_unsupported_kind.RULE,
    stl990_unused_suppression.RULE,
)


def rule_named(text: str) -> Rule | None:
    """The rule of that id or slug, in any case."""
    wanted = text.strip().lower()
    return next((r for r in RULES if wanted in (r.id.lower(), r.slug)), None)


def run_rules(judgement: Judgement) -> tuple[Finding, ...]:
    """Findings of every rule, ordered by file, line and rule id."""
    found = [f for rule in RULES for f in rule.check(judgement)]
    return tuple(sorted(found, key=lambda f: (f.primary.file, f.primary.span.line, f.rule, f.message)))
