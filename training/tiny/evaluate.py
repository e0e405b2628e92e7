"""Measure a tiny checkpoint on held-out documents.

    python training/tiny/evaluate.py                   # the checkpoint in the repository
    python training/tiny/evaluate.py FOLDER --texts    # another one, with its greedy texts

The prompts are the openings of the first held-out documents of each domain: the seed chooses them.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from tokenizers import Tokenizer

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from training.tiny.corpus import DOMAINS, Document, document
from training.tiny.judge import judge
from training.tiny.model import TinyConfig, TinyLlama
from training.tiny.packing import END_ID, PackedStream, domain_batch

CHECKPOINT = Path(__file__).resolve().parents[2] / "labkit" / "models" / "tiny"
EVALUATION_SEED = 2
POSITION_RANGES = ((0, 128), (128, 512), (512, 1024), (1024, 2048))


def load(folder: Path) -> tuple[TinyLlama, Tokenizer]:
    """The checkpoint's weights, widened to float32, and its tokenizer."""
    stored = json.loads((folder / "config.json").read_text())
    config = TinyConfig(**{name: stored[name] for name in asdict(TinyConfig())})
    model = TinyLlama(config, seed=0)
    weights = load_file(folder / "model.safetensors")
    model.load_state_dict({name: weight.float() for name, weight in weights.items()})
    return model, Tokenizer.from_file(str(folder / "tokenizer.json"))


@torch.no_grad()
def domain_loss(
    model: TinyLlama, tokenizer: Tokenizer, domain: str, sequences: int = 16, length: int = 512
) -> float:
    """Mean held-out loss of a domain, in nats per token."""
    ids = domain_batch(tokenizer, domain, EVALUATION_SEED, sequences, length)
    losses = [model.loss(row[None]).item() for row in ids]
    return sum(losses) / len(losses)


@torch.no_grad()
def loss_by_position(
    model: TinyLlama, tokenizer: Tokenizer, sequences: int = 24
) -> dict[str, float]:
    """Mean held-out loss of the tokens at ranges of positions in sequences of 2,048."""
    stream = PackedStream(tokenizer, "held-out", EVALUATION_SEED)
    losses = []
    for row in stream.batch(sequences, POSITION_RANGES[-1][1]):
        logits = model(row[None, :-1])[0]
        losses.append(F.cross_entropy(logits, row[1:], reduction="none"))
    mean = torch.stack(losses).mean(dim=0)
    return {f"{a}-{b - 1}": round(mean[a:b].mean().item(), 4) for a, b in POSITION_RANGES}


@torch.no_grad()
def greedy(model: TinyLlama, prompts: list[list[int]], new_tokens: int) -> list[list[int]]:
    """The most likely continuation of each prompt, up to and without the end token.

    The batch is padded on the right: with causal attention the padding is never looked at.
    """
    width = max(map(len, prompts)) + new_tokens
    ids = torch.full((len(prompts), width), END_ID)
    for row, prompt in enumerate(prompts):
        ids[row, : len(prompt)] = torch.tensor(prompt)
    ends = torch.tensor([len(prompt) for prompt in prompts])
    rows = torch.arange(len(prompts))
    for _ in range(new_tokens):
        logits = model(ids[:, : int(ends.max())])
        ids[rows, ends] = logits[rows, ends - 1].argmax(dim=-1)
        ends += 1
    texts = [
        row[len(p) : len(p) + new_tokens].tolist() for row, p in zip(ids, prompts, strict=True)
    ]
    return [text[: text.index(END_ID)] if END_ID in text else text for text in texts]


def held_out_prompts(per_domain: int) -> list[Document]:
    """The first held-out documents of each domain; their openings are the prompts."""
    return [
        document(domain, index, "held-out", EVALUATION_SEED)
        for domain in DOMAINS
        for index in range(per_domain)
    ]


def greedy_report(
    model: TinyLlama, tokenizer: Tokenizer, per_domain: int = 4, new_tokens: int = 128
) -> list[dict[str, Any]]:
    """Greedy continuations of held-out prompts with their judgements."""
    chosen = held_out_prompts(per_domain)
    prompts = [tokenizer.encode(d.opening + d.separator.rstrip(" ")).ids for d in chosen]
    report = []
    for d, ids in zip(chosen, greedy(model, prompts, new_tokens), strict=True):
        text = tokenizer.decode(ids)
        found = judge(d, text)
        report.append(
            {
                "prompt": d.opening,
                "continuation": text,
                "tokens": len(ids),
                "ended": len(ids) < new_tokens,
                "passed": found.passed,
                **asdict(found),
            }
        )
    return report


def evaluate(model: TinyLlama, tokenizer: Tokenizer) -> dict[str, Any]:
    """All measurements, as they stand in TRAINING.json."""
    losses = {name: round(domain_loss(model, tokenizer, name), 4) for name in DOMAINS}
    report = greedy_report(model, tokenizer)
    facts = [document("quiz", index, "held-out", EVALUATION_SEED) for index in range(12)]
    prompts = [tokenizer.encode(d.opening + "\n").ids for d in facts]
    answers = [
        judge(d, tokenizer.decode(ids))
        for d, ids in zip(facts, greedy(model, prompts, 128), strict=True)
    ]
    return {
        "split": "held-out",
        "seed": EVALUATION_SEED,
        "held_out_loss_nats_per_token": losses,
        "held_out_perplexity": {
            name: round(float(torch.tensor(loss).exp()), 3) for name, loss in losses.items()
        },
        "loss_by_position": loss_by_position(model, tokenizer),
        "greedy_passed": sum(entry["passed"] for entry in report),
        "greedy_prompts": len(report),
        "scene_answers_right": sum(found.facts_right for found in answers),
        "scene_answers_given": sum(found.facts_asked for found in answers),
        "game_lists_right": sum(entry["lists_right"] for entry in report),
        "game_lists_made": sum(entry["lists_made"] for entry in report),
        "greedy": report,
    }


def main() -> None:
    """Print the measurements."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folder", type=Path, nargs="?", default=CHECKPOINT)
    parser.add_argument("--texts", action="store_true", help="print the greedy texts")
    parser.add_argument("--record", action="store_true", help="write them to TRAINING.json")
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    results = evaluate(*load(arguments.folder))
    if arguments.record:
        path = arguments.folder / "TRAINING.json"
        record = {**json.loads(path.read_text()), "evaluation": results}
        path.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n")
    for entry in results.pop("greedy"):
        if arguments.texts:
            mark = "passed" if entry["passed"] else "failed"
            print(f"[{entry['domain']}, {mark}] {entry['prompt']} ||| {entry['continuation']}\n")
    print(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
