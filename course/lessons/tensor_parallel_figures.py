"""What the texts of lesson 02 quote: shapes and costs, computed once from the presets."""

from __future__ import annotations

from course.labels import quantity
from course.lessons.figures import modelled_bytes, times
from labkit.plan.holdings import holdings
from labkit.plan.layout import legal_tensor_parallel_sizes
from labkit.plan.presets import PRESETS
from labkit.plan.shard import partition_vocab
from labkit.plan.traffic import decode_traffic, gathered_weight_bytes

BF16 = 2
FP32 = 4

SMOLLM2 = PRESETS["smollm2-135m"].spec
QWEN_HALF_B = PRESETS["qwen2.5-0.5b"].spec
LLAMA_70B = PRESETS["llama-3.1-70b"].spec

EVEN_TP = LLAMA_70B.num_kv_heads
"""The largest degree at which every KV head of Llama-3.1-70B lives once."""
EVEN = holdings(LLAMA_70B, EVEN_TP, bytes_per_element=BF16)
REPLICATED_TP = 2 * EVEN_TP
REPLICATED = holdings(LLAMA_70B, REPLICATED_TP, bytes_per_element=BF16)

REPLICA_WEIGHTS = modelled_bytes(REPLICATED.kv_head_weight_bytes)
REPLICA_KV = modelled_bytes(REPLICATED.kv_head_bytes_per_token)
ALL_REPLICAS_WEIGHTS = modelled_bytes(REPLICATED.replicated["KV heads"])
ALL_REPLICAS_KV = modelled_bytes(REPLICATED.extra_kv_bytes_per_token)
KV_PER_RANK = modelled_bytes(EVEN.ranks[0].kv_bytes_per_token)
HALF_SAME_DOUBLE_KV = tuple(
    quantity(EVEN.ranks[0].kv_bytes_per_token * factor, "B", short=True) for factor in (0.5, 1, 2)
)
"""Three answers of a quiz, of which one is right: no label, which would say that all hold."""
assert REPLICATED.ranks[0].kv_bytes_per_token == EVEN.ranks[0].kv_bytes_per_token

ONE_TOKEN = decode_traffic(LLAMA_70B, EVEN_TP, 1, BF16)
LARGE_BATCH = 64
BATCH_OF_TOKENS = decode_traffic(LLAMA_70B, EVEN_TP, LARGE_BATCH, BF16)
SMALL_MODEL_TOKEN = decode_traffic(SMOLLM2, 3, 1, FP32)
GATHERED = gathered_weight_bytes(LLAMA_70B, EVEN_TP, BF16)
GATHERED_TIMES = times(GATHERED / ONE_TOKEN.wire_bytes_per_rank)

QWEN_LEGAL = legal_tensor_parallel_sizes(QWEN_HALF_B)

ODD_VOCAB = 32001
"""A vocabulary that got one token added: no degree above 1 that is a power of two divides it."""
PADDED = partition_vocab(ODD_VOCAB, 2)
