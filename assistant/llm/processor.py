"""What this machine has to compute with, and what its processor is quick at."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import psutil

_CPUINFO = Path("/proc/cpuinfo")


def sees_gpu() -> bool:
    """Whether torch can use a GPU of this machine."""
    import torch  # noqa: PLC0415

    return bool(torch.cuda.is_available())


def has_bf16() -> bool:
    """Whether it has units that multiply bf16; without them half precision is slower than single."""
    return bool(_units().get("avx512_bf16") or _units().get("amx_bf16"))


def has_wide_vectors() -> bool:
    """Whether it has vectors of 512 bits or units for matrices (Intel since 2017 on servers, AMD since Zen 4)."""
    return bool(_units().get("avx512_f") or has_matrix_units())


def has_matrix_units() -> bool:
    """Whether it has units that multiply matrices (Intel's AMX)."""
    return bool(_units().get("amx_int8"))


def has_avx2() -> bool:
    """Whether it has vectors of 256 bits with whole numbers, as nearly all x86 since 2013."""
    return bool(_units().get("avx2"))


def description(backend: str) -> str:
    """What that backend computes with on this machine: the GPU's name, or the cores and the processor's name."""
    if backend == "transformers" and sees_gpu():
        import torch  # noqa: PLC0415

        return str(torch.cuda.get_device_name())
    return f"{psutil.cpu_count()} x {_processor()}"


def _processor() -> str:
    """Linux tells Python the architecture alone, and the name in a file."""
    if _CPUINFO.exists():
        for line in _CPUINFO.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


@cache
def _units() -> Mapping[str, object]:
    import torch  # noqa: PLC0415

    units: Mapping[str, object] = torch.cpu.get_capabilities()
    return units
