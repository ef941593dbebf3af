"""Finds out what this machine computes with: GPUs, and the instruction sets of its processor."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from ctypes import CDLL
from functools import cache
from pathlib import Path

import psutil

_CPUINFO = Path("/proc/cpuinfo")
_NVIDIA, _AMD = ("libcuda.so.1", "nvcuda.dll"), Path("/dev/kfd")


def sees_gpu() -> bool:
    """Whether torch can use a GPU of this machine; it takes seconds to import, and isn't asked without a driver."""
    if not _has_driver():
        return False
    import torch  # noqa: PLC0415

    return bool(torch.cuda.is_available())


def has_bf16() -> bool:
    """Whether it has units that multiply bf16; without them half precision is slower than single."""
    return not _units().isdisjoint({"avx512_bf16", "amx_bf16"})


def has_wide_vectors() -> bool:
    """Whether it has vectors of 512 bits or units for matrices (Intel since 2017 on servers, AMD since Zen 4)."""
    return "avx512f" in _units() or has_matrix_units()


def has_matrix_units() -> bool:
    """Whether it has units that multiply matrices (Intel's AMX)."""
    return "amx_int8" in _units()


def has_avx2() -> bool:
    """Whether it has vectors of 256 bits with whole numbers, as nearly all x86 since 2013."""
    return "avx2" in _units()


def cores() -> int:
    """How many cores this process may use, hyperthreads not counted."""
    usable_cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(usable_cores, psutil.cpu_count(logical=False) or usable_cores)


def description(backend: str) -> str:
    """What that backend computes with on this machine: the GPU's name, or the cores and the processor's name."""
    if backend == "transformers" and sees_gpu():
        import torch  # noqa: PLC0415

        return str(torch.cuda.get_device_name())
    return f"{psutil.cpu_count()} x {_processor()}"


def _processor() -> str:
    """The processor's name, which Linux gives in a file, while Python knows only the architecture."""
    return _cpuinfo("model name") or platform.processor() or platform.machine()


@cache
def _units() -> frozenset[str]:
    """The processor's instruction sets by Linux's names; without Linux, torch is asked."""
    if _CPUINFO.exists():
        return frozenset(_cpuinfo("flags").split())
    import torch  # noqa: PLC0415

    units: Mapping[str, object] = torch.cpu.get_capabilities()
    return frozenset(name.replace("avx512_f", "avx512f") for name, is_supported in units.items() if is_supported)


def _cpuinfo(name: str) -> str:
    """The entry of this name for the first core in Linux's file, "" if there is none."""
    if _CPUINFO.exists():
        for line in _CPUINFO.read_text(encoding="utf-8").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == name:
                return value.strip()
    return ""


@cache
def _has_driver() -> bool:
    """Whether there is a driver of NVIDIA's GPUs, or of AMD's."""
    return _AMD.exists() or any(_loads(name) for name in _NVIDIA)


def _loads(library: str) -> bool:
    try:
        CDLL(library)
    except OSError:
        return False
    return True
