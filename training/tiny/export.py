"""Write a finished training run as a checkpoint folder with its record, `TRAINING.json`."""

from __future__ import annotations

import hashlib
import json
import platform
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

import tokenizers
import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer

from training.tiny.corpus import DOMAINS, LAST_MIXTURE, MIXTURE, documents
from training.tiny.corpus_words import HELD_OUT_SHARE
from training.tiny.evaluate import evaluate, load
from training.tiny.model import TinyLlama
from training.tiny.tokenizer import END_OF_TEXT, PADDING, TRAINING_DOCUMENTS

FINGERPRINT_DOCUMENTS = 1000


def write_checkpoint(model: TinyLlama, tokenizer: Tokenizer, folder: Path) -> None:
    """`config.json`, `model.safetensors` in bfloat16, and the tokenizer's two files."""
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "config.json", model.config.to_hf())
    weights = {
        name: weight.to(torch.bfloat16).contiguous() for name, weight in model.state_dict().items()
    }
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "model.safetensors").chmod(0o644)
    tokenizer.save(str(folder / "tokenizer.json"))
    write_json(
        folder / "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "bos_token": END_OF_TEXT,
            "eos_token": END_OF_TEXT,
            "pad_token": PADDING,
            "clean_up_tokenization_spaces": False,
            "model_max_length": model.config.max_position_embeddings,
        },
    )


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Indented JSON with a newline at the end."""
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def sha256(path: Path) -> str:
    """The hexadecimal SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def corpus_fingerprint(seed: int) -> str:
    """SHA-256 over the text of the first training documents: changes when the generator does."""
    texts = (document.text for document in islice(documents("train", seed), FINGERPRINT_DOCUMENTS))
    return hashlib.sha256("\n\n".join(texts).encode()).hexdigest()


def processor() -> str:
    """The processor's model name, or the architecture where the system does not tell it."""
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def export(run: Any, folder: Path, workers: int) -> None:
    """Write the checkpoint of a `train.Run`, read it back, evaluate that, and record it all."""
    write_checkpoint(run.model, run.tokenizer, folder)
    model, tokenizer = load(folder)
    recipe = run.recipe
    record = {
        "model": "A 4-layer Llama trained from nothing on text that the project writes",
        "script": "training/tiny/train.py",
        "command": f"python training/tiny/train.py --out RUN --export labkit/models/tiny "
        f"--steps {recipe.steps} --decay {recipe.decay} --seed {recipe.seed}",
        "licence": "Apache-2.0, like the project; the text is the generator's, no other source",
        "recipe": asdict(recipe),
        "optimizer": "Muon for the layers' matrices, AdamW for the embedding and the norms",
        "schedule": "warm up, constant, linear to zero over the last `decay` steps",
        "precision": "trained in float32, rounded to bfloat16 once at the end, then evaluated",
        "determinism": "bit for bit with the same seed, torch and processor; "
        "elsewhere the same text in the same order, and weights that differ by rounding",
        "data": {
            "generator": "training/tiny/corpus.py",
            "seed": recipe.seed,
            "domains": list(DOMAINS),
            "mixture_weights": [{"memory": 1}, MIXTURE, LAST_MIXTURE],
            "mixtures_change_at_steps": [recipe.game_steps, recipe.last_mixture_from],
            "documents_seen_once_each": run.documents_seen,
            "held_out": f"one (who, what, where) in {HELD_OUT_SHARE}, by checksum; every opening "
            "names its triple, so no held-out opening occurs in training",
            "tokenizer_documents": TRAINING_DOCUMENTS,
            "fingerprint": {
                "first_training_documents": FINGERPRINT_DOCUMENTS,
                "sha256": corpus_fingerprint(recipe.seed),
            },
        },
        "steps": run.step,
        "tokens": run.step * recipe.tokens_per_step,
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "cost": {
            "cpu_seconds": round(run.cpu_seconds, 1),
            "wall_seconds": round(run.wall_seconds, 1),
            "worker_threads": workers,
            "minutes_on_two_cores": round(run.cpu_seconds / 120, 1),
            "note": "CPU time of the training process; other work shared the machine, so its wall "
            "time is longer than an idle machine needs; earlier attempts are not in it",
            "processor": processor(),
        },
        "versions": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "tokenizers": tokenizers.__version__,
        },
        "files": {
            name: {"bytes": (folder / name).stat().st_size, "sha256": sha256(folder / name)}
            for name in ("config.json", "model.safetensors", "tokenizer.json")
        },
        "loss_curve": run.curve,
        "evaluation": evaluate(model, tokenizer),
    }
    write_json(folder / "TRAINING.json", record)
