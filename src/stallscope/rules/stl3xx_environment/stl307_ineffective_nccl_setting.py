"""STL307: a variable that the library no longer reads, or never did."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from stallscope.findings import Finding, Severity
from stallscope.judge.result import Judgement
from stallscope.rules.base import Report
from stallscope.rules.support.settings import job_settings
from stallscope.rules.support.words import label

_REPORT = Report("STL307", "ineffective-nccl-setting", Severity.INFO)
_ALIAS = "a deprecated alias that current PyTorch still reads, with a warning"
#: Old name -> (what to use, what is wrong with it). PyTorch renamed its own NCCL_* variables to TORCH_NCCL_* in 2.2 and kept
#: the old names as aliases (getCvar* in torch/csrc/distributed/c10d); the recorder's are TORCH_FR_* now.
_OLD: Mapping[str, tuple[str, str]] = {
    "NCCL_ASYNC_ERROR_HANDLING": ("TORCH_NCCL_ASYNC_ERROR_HANDLING", _ALIAS),
    "NCCL_BLOCKING_WAIT": ("TORCH_NCCL_BLOCKING_WAIT", _ALIAS),
    "NCCL_DESYNC_DEBUG": ("TORCH_NCCL_DESYNC_DEBUG", _ALIAS),
    "NCCL_ENABLE_TIMING": ("TORCH_NCCL_ENABLE_TIMING", _ALIAS),
    "TORCH_NCCL_TRACE_BUFFER_SIZE": ("TORCH_FR_BUFFER_SIZE", _ALIAS),
    "TORCH_NCCL_DEBUG_INFO_TEMP_FILE": ("TORCH_FR_DUMP_TEMP_FILE", _ALIAS),
    "NCCL_TIMEOUT": ("the timeout argument of init_process_group", "read neither by NCCL nor by PyTorch"),
    "NCCL_TREE_THRESHOLD": ("NCCL_ALGO", "ignored since NCCL 2.5"),
    "NCCL_LL_THRESHOLD": ("NCCL_PROTO", "ignored since NCCL 2.5"),
    "NCCL_IB_CUDA_SUPPORT": ("NCCL_NET_GDR_LEVEL", "ignored since NCCL 2.4"),
}
#: Names people write for the interface variables; nobody reads them.
_MISSPELT: Mapping[str, tuple[str, str]] = {
    "NCCL_SOCKET_IF_NAME": ("NCCL_SOCKET_IFNAME", "misspelt, so NCCL ignores it"),
    "NCCL_IFNAME": ("NCCL_SOCKET_IFNAME", "misspelt, so NCCL ignores it"),
    "GLOO_IFNAME": ("GLOO_SOCKET_IFNAME", "misspelt, so Gloo ignores it"),
    "GLOO_SOCKET_IF_NAME": ("GLOO_SOCKET_IFNAME", "misspelt, so Gloo ignores it"),
}


def check(judgement: Judgement) -> Iterable[Finding]:
    for judged in judgement.jobs:
        for role, found in job_settings(judged.job, *_OLD, *_MISSPELT):
            use, wrong = _OLD.get(found.name) or _MISSPELT[found.name]
            yield _REPORT.finding(
                f"{found.name} in {role.name} of {judged.job.ref} is {wrong}",
                (label(found.location, f"use {use}", primary=True),),
                subject=judged.job.ref,
                key=f"{role.name}:{found.name}",
                severity=Severity.WARNING if found.name in _MISSPELT else Severity.INFO,
                notes=() if wrong is _ALIAS else ("what it stands for is not in force, and nothing says so at run time",),
                help=f"use {use}",
            )


RULE = _REPORT.rule(
    check,
    what="A variable is set that current NCCL, Gloo or PyTorch ignores or only keeps as a deprecated alias.",
    why="The team believes that a timeout, an abort or an interface is configured, and finds out during the stall that it "
    "is not.",
    bad="""\
env:
  - name: NCCL_ASYNC_ERROR_HANDLING
    value: "1"
""",
    good="""\
env:
  - name: TORCH_NCCL_ASYNC_ERROR_HANDLING
    value: "1"
""",
    fix="Use the current name. The process group timeout is an argument of init_process_group, not a variable.",
    sources=(
        "https://pytorch.org/docs/stable/torch_nccl_environment_variables.html",
        "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html",
    ),
)
