"""Loading and timing a `transformers` model: shared by the three peers built on it."""

from __future__ import annotations

import time
from typing import Any

import torch
from transformers import AutoModelForCausalLM
from transformers.generation.streamers import BaseStreamer

from benchmarks.protocol import Answer, Request


class TokenClock(BaseStreamer):
    """Notes the time at which generate hands over each position; the prompt comes first."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def put(self, value: torch.Tensor) -> None:
        """One call for the prompt, then one per step."""
        self.times.append(time.perf_counter())

    def end(self) -> None:
        """Nothing is held back."""

    @property
    def decode_seconds(self) -> float:
        """From the first new token to the last."""
        return self.times[-1] - self.times[1]


def load(path: str, dtype: str, **how: Any) -> Any:
    """The causal language model at `path` with scaled-dot-product attention, greedy, no stop."""
    model = AutoModelForCausalLM.from_pretrained(
        path, dtype=getattr(torch, dtype), attn_implementation="sdpa", **how
    )
    model.eval()
    model.generation_config.eos_token_id = None
    model.generation_config.pad_token_id = 0
    return model


@torch.inference_mode()
def timed_generate(model: Any, request: Request) -> Answer:
    """Greedy `generate` with the KV cache that `request.variant` names, dynamic or static."""
    torch.set_num_threads(request.threads)
    ids_BT = torch.tensor(request.prompts)
    clock = TokenClock()
    cache = {} if request.variant != "static" else {"cache_implementation": "static"}
    output_BT = model.generate(
        ids_BT,
        attention_mask=torch.ones_like(ids_BT),
        min_new_tokens=request.new_tokens,
        max_new_tokens=request.new_tokens,
        do_sample=False,
        streamer=clock,
        disable_compile=True,
        **cache,
    )
    return Answer(
        seconds=clock.decode_seconds,
        tokens=output_BT[:, ids_BT.shape[1] :].tolist(),
        settings=f"sdpa, {request.variant or 'dynamic'} cache",
    )
