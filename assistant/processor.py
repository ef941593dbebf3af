"""What this machine's processor is quick at."""

from __future__ import annotations

from functools import cache


@cache
def has_bf16() -> bool:
    """Whether it has units that multiply bf16; without them half precision is slower than single."""
    import torch  # noqa: PLC0415

    units = torch.cpu.get_capabilities()
    return bool(units.get("avx512_bf16") or units.get("amx_bf16"))
