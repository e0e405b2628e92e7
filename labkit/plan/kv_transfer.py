"""Moving a prompt's KV cache from the worker that made it to the one that decodes (modelled)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from labkit.plan.model import ModelSpec
from labkit.plan.step_work import element_bytes

if TYPE_CHECKING:
    from labkit.plan.hardware import LinkSpec

QUICK_SECONDS = 0.05
"""What a hop may take to go unnoticed, paid once for a request and not for each token."""
_LONGEST = 2**24


def transfer_bytes(
    model: ModelSpec, prompt_tokens: int, kv_bytes_per_element: float | None = None
) -> float:
    """Bytes of a prompt's caches, windows and recurrent states included.

    kv_bytes_per_element: of the KV cache; None for the model's own dtype.

    Raises ValueError for fewer than one token.
    """
    if prompt_tokens < 1:
        raise ValueError(f"prompt_tokens is {prompt_tokens}; it must be at least 1")
    element = element_bytes(model) if kv_bytes_per_element is None else kv_bytes_per_element
    return model.kv_bytes(prompt_tokens, element)


def transfer_seconds(
    model: ModelSpec,
    prompt_tokens: int,
    link: LinkSpec,
    *,
    links: int = 1,
    kv_bytes_per_element: float | None = None,
) -> float:
    """Seconds until all of a prompt's caches are there, one after the other.

    links: that carry parts of it side by side, as many as GPUs on the side with fewer.

    Raises ValueError for fewer than one token or link.
    """
    if links < 1:
        raise ValueError(f"links is {links}; it must be at least 1")
    size = transfer_bytes(model, prompt_tokens, kv_bytes_per_element)
    return link.hop_latency + size / (links * link.bandwidth)


def longest_quick_prompt(
    model: ModelSpec,
    link: LinkSpec,
    *,
    limit: float = QUICK_SECONDS,
    links: int = 1,
    kv_bytes_per_element: float | None = None,
) -> int:
    """The most prompt tokens whose caches move within `limit` seconds; 0 where none do, and
    2**24 where the length does not matter."""

    def is_quick(tokens: int) -> bool:
        seconds = transfer_seconds(
            model, tokens, link, links=links, kv_bytes_per_element=kv_bytes_per_element
        )
        return seconds <= limit

    if not is_quick(1):
        return 0
    good, bad = 1, _LONGEST + 1
    while bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if is_quick(middle) else (good, middle)
    return good
