"""Lesson 02: mistakes that people make with tensor parallelism, each seen in a public code base."""

from __future__ import annotations

from course.lessons.content import Pitfall
from course.lessons.tensor_parallel_figures import ODD_VOCAB, PADDED

PITFALLS = (
    Pitfall(
        "The bias of a row-parallel layer on every rank",
        symptom="Outputs are off by a constant for each feature, more with more ranks.",
        cause="Every rank adds the whole bias to its partial sum, so the total has it once for "
        "each rank.",
        remedy="One rank adds it, or all of them add it after the all-reduce.",
    ),
    Pitfall(
        "Gate and up joined first, cut afterwards",
        symptom="Text turns to noise at TP 2 and above; TP 1 is fine.",
        cause="The joined matrix is `[gate, up]`. Its first half is all of gate, so one rank gets "
        "only gate rows and the other only up rows. The same happens to a joined QKV.",
        remedy="Cut each part on its own, then join a rank's cuts.",
    ),
    Pitfall(
        "KV heads neither divided nor copied",
        symptom="It loads, and the first forward pass dies on a shape; or it runs, and each query "
        "head looks at another head's keys.",
        cause="With more ranks than KV heads, nobody decided which rank holds which head.",
        remedy="Rank r holds KV head `r * kv_heads // tp`. Check degree against heads before any "
        "process starts.",
    ),
    Pitfall(
        "Padding rows that win",
        symptom="Now and then a token id appears that the tokenizer does not know.",
        cause=f"{ODD_VOCAB:,} tokens over TP 2 are padded to {PADDED.padded_size:,} rows of "
        f"{PADDED.rows_per_rank:,} a rank. Rows of zeros give a logit of zero, which beats "
        "every negative one.",
        remedy="Logits of padding rows are minus infinity. They also stay out of the sum of a "
        "softmax.",
    ),
    Pitfall(
        "A log-softmax with one rank's maximum and sum",
        symptom="Log-probabilities look plausible and are too high.",
        cause="The rank that owns the token normalised over its own rows only.",
        remedy="The maximum and the sum of exponentials run over all ranks; each needs a "
        "reduction before the logarithm.",
    ),
    Pitfall(
        "Every rank draws its own next token",
        symptom="Greedy decoding works. With a temperature, the answer falls apart after some "
        "tokens, or ranks stop at different lengths and the job hangs.",
        cause="The ranks drew different tokens and went on with different texts.",
        remedy="Draw once and send the id, or let all ranks draw from the same bits with the "
        "same random state.",
    ),
    Pitfall(
        "Memory planned for the average rank",
        symptom="Out of memory on one rank while the others have room.",
        cause="With uneven heads the ranks hold different shares of the KV cache, and free "
        "memory differs too.",
        remedy="Plan with the fullest rank: the number of KV blocks (pieces of equal size in "
        "which cache memory is handed out) is the minimum over ranks.",
    ),
    Pitfall(
        "A test that wants the same bits at every degree",
        symptom="A regression test fails after a change of TP degree, though nothing is broken.",
        cause="A row-parallel layer adds partial sums, and another order rounds differently.",
        remedy="Compare decisions and distributions with a tolerance, or pin the degree.",
    ),
    Pitfall(
        "GPUs picked by number, not by link",
        symptom="TP 2 on one pair of GPUs is clearly faster than TP 2 on another pair of the same "
        "machine.",
        cause="Only some pairs share a direct link; traffic of the others crosses PCIe or host "
        "memory.",
        remedy="Look at the topology, and keep a tensor parallel group on GPUs that share fast "
        "links.",
    ),
)
