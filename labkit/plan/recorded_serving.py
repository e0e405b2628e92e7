"""Serving recorded elsewhere: Llama 3.1 70B in FP8, vLLM, H100 SXM, by TP, lengths and clients.

Captured in InferenceMAX's runs of October 2025 and shipped by aiconfigurator-core. The client asks
for lengths drawn evenly from 80 % to 100 % of the nominal ones and sends ten prompts for each
concurrent client, the first of each at once. Concurrency is the clients': where the KV cache holds
fewer sequences, fewer run.
"""

from __future__ import annotations

from labkit.plan.presets import Source
from labkit.plan.serving_rows import ServingRow

SOURCE = Source(
    "https://github.com/ai-dynamo/aiconfigurator",
    "aiconfigurator-core 0.12.0 (PyPI, Apache-2.0), systems/silicon_sample.csv",
    "2026-12-01",
)
CLIENT_SOURCE = Source(
    "https://github.com/InferenceMAX/InferenceMAX",
    "README.md of a public copy: RANDOM_RANGE_RATIO 0.8, num-prompts 10 x concurrency",
    "2026-12-01",
)
"""How the client draws lengths and how many prompts it sends."""
LENGTH_SHARE = 0.9
"""Mean of the lengths drawn, of the nominal ones."""

_TABLE = """
tp|prompt|output|clients|TTFT ms|TPOT ms
2|1024|1024|4|121.308|17.4072
2|1024|1024|8|150.25|18.2208
2|1024|1024|16|252.517|19.74
2|1024|1024|32|272.743|23.5381
2|1024|1024|64|415.132|28.7686
4|1024|1024|4|80.5001|11.7761
4|1024|1024|8|96.3387|12.1105
4|1024|1024|16|121.413|13.1922
4|1024|1024|32|174.8|16.4915
4|1024|1024|64|256.359|19.5146
8|1024|1024|4|70.4104|9.11389
8|1024|1024|8|75.7984|9.35605
8|1024|1024|16|93.0132|11.3917
8|1024|1024|32|124.399|12.6372
8|1024|1024|64|184.828|15.455
2|1024|8192|4|124.017|17.9713
2|1024|8192|8|155.351|19.1941
2|1024|8192|16|191.268|22.1303
2|1024|8192|32|288.953|27.6941
2|1024|8192|64|30787.1|41.6822
4|1024|8192|4|85.9067|11.9955
4|1024|8192|8|99.3194|12.6564
4|1024|8192|16|127.914|14.0948
4|1024|8192|32|171.733|18.3859
4|1024|8192|64|261.436|23.4067
8|1024|8192|4|73.0801|9.19537
8|1024|8192|8|82.2661|9.81499
8|1024|8192|16|93.1838|11.584
8|1024|8192|32|119.103|12.8645
8|1024|8192|64|176.197|16.4892
2|8192|1024|4|737.532|20.6155
2|8192|1024|8|962.856|25.0137
2|8192|1024|16|1284.11|34.6253
2|8192|1024|32|6518.3|52.3688
2|8192|1024|64|59175.4|52.4064
4|8192|1024|4|453.285|13.2742
4|8192|1024|8|582.928|15.7662
4|8192|1024|16|731.504|21.0641
4|8192|1024|32|1068.7|32.8244
4|8192|1024|64|1744.92|53.4947
8|8192|1024|4|300.781|10.2178
8|8192|1024|8|360.731|11.5878
8|8192|1024|16|482.889|15.8526
8|8192|1024|32|689.243|21.6121
8|8192|1024|64|1150.26|34.4826
"""


def _rows() -> tuple[ServingRow, ...]:
    _, *lines = _TABLE.strip().splitlines()
    rows = []
    for line in lines:
        tp, prompt, output, clients, ttft, tpot = line.split("|")
        rows.append(
            ServingRow(
                tp=int(tp),
                prompt_tokens=int(prompt),
                output_tokens=int(output),
                concurrency=int(clients),
                ttft=float(ttft) * 1e-3,
                tpot=float(tpot) * 1e-3,
                length_share=LENGTH_SHARE,
            )
        )
    return tuple(rows)


ROWS = _rows()
"""45 rows, by TP (2, 4, 8), lengths (1024/1024, 1024/8192, 8192/1024) and clients (4 to 64)."""
