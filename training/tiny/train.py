"""Train the tiny model from nothing.

    python training/tiny/train.py --smoke             # seconds; shows that the loss goes down
    python training/tiny/train.py --out run           # the real thing; resumes where it stopped
    python training/tiny/train.py --out run --export labkit/models/tiny

Same seed, torch version and processor: same numbers, bit for bit. Otherwise the
text is still the same and the weights differ by the rounding that builds up.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from tokenizers import Tokenizer
from torch import Tensor

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from training.tiny.corpus import LAST_MIXTURE, MIXTURE
from training.tiny.export import export
from training.tiny.model import TinyConfig, TinyLlama
from training.tiny.optimizer import make_optimizers, schedule
from training.tiny.packing import PackedStream
from training.tiny.tokenizer import train_tokenizer

HELD_OUT_SEED_OFFSET = 1
FIRST_DOCUMENTS = (10_000_000, 0, 20_000_000)
MIXTURES = ({"memory": 1}, MIXTURE, LAST_MIXTURE)


@dataclass(frozen=True)
class Recipe:
    """Everything that decides the result.

    The first `game_steps` steps see the memory game only, in sequences of `game_length`: a model
    that has learned to look back there looks back in all other texts too, and without this start
    it did not learn to within the budget. After that come all domains; from `last_mixture_from` on
    the questions about a scene come in a fixed order, so that greedy text does not go in circles.
    Every `long_every`-th step has sequences of `long`.
    """

    seed: int = 0
    steps: int = 1200
    tokens_per_step: int = 4096
    game_steps: int = 200
    game_length: int = 128
    last_mixture_from: int = 850
    short: int = 512
    long: int = 2048
    long_every: int = 4
    micro_tokens: int = 1024
    warmup: int = 20
    decay: int = 400
    matrix_lr: float = 0.02
    other_lr: float = 0.003
    validate_every: int = 100

    def stage(self, step: int) -> int:
        """0 for the memory game, 1 for the first mixture, 2 for the last one."""
        return (step >= self.game_steps) + (step >= self.last_mixture_from)

    def length(self, step: int) -> int:
        """Sequence length of a step."""
        if step < self.game_steps:
            return self.game_length
        return self.long if step % self.long_every == self.long_every - 1 else self.short


SMOKE = Recipe(
    steps=12, tokens_per_step=1024,
    game_steps=4, short=128, long=256, micro_tokens=1024, warmup=2, decay=4,
    validate_every=6,
)  # fmt: skip
SMOKE_CONFIG = TinyConfig(hidden_size=64, intermediate_size=128, num_hidden_layers=2)


class Run:
    """A training run: what changes from step to step, and how it is saved."""

    def __init__(
        self, recipe: Recipe, config: TinyConfig, tokenizer: Tokenizer, workers: int = 1
    ) -> None:
        self.workers = ThreadPoolExecutor(workers)
        self.recipe = recipe
        self.config = config
        self.tokenizer = tokenizer
        self.model = TinyLlama(config, recipe.seed)
        self.optimizers = make_optimizers(self.model, recipe.matrix_lr, recipe.other_lr)
        self.streams = self.open_streams([(first, None) for first in FIRST_DOCUMENTS])
        held_out = PackedStream(tokenizer, "held-out", recipe.seed + HELD_OUT_SEED_OFFSET)
        self.validation_ids = held_out.batch(max(1, 8192 // recipe.short), recipe.short)
        self.step = 0
        self.curve: list[dict[str, float]] = []
        self.cpu_seconds = self.wall_seconds = 0.0

    def open_streams(self, states: list[tuple[int, Tensor | None]]) -> list[PackedStream]:
        """The memory game alone and the two mixtures, each from a (position, rest)."""
        return [
            PackedStream(self.tokenizer, "train", self.recipe.seed, position, rest, mixture)
            for (position, rest), mixture in zip(states, MIXTURES, strict=True)
        ]

    def train_step(self) -> float:
        """One optimiser step; the mean loss in nats.

        Workers share the micro-batches, and the gradients are added in the order of the
        micro-batches: the number of workers does not change the result.
        """
        recipe, length = self.recipe, self.recipe.length(self.step)
        ids = self.streams[recipe.stage(self.step)].batch(recipe.tokens_per_step // length, length)
        parameters = list(self.model.parameters())

        def gradients(micro: Tensor) -> tuple[float, tuple[Tensor, ...]]:
            loss = self.model.loss(micro) * (len(micro) / len(ids))
            return loss.item(), torch.autograd.grad(loss, parameters)

        total = 0.0
        for loss, grads in self.workers.map(
            gradients, ids.split(max(1, recipe.micro_tokens // length))
        ):
            total += loss
            for parameter, grad in zip(parameters, grads, strict=True):
                parameter.grad = grad if parameter.grad is None else parameter.grad + grad
        factor = schedule(self.step, recipe.steps, recipe.warmup, recipe.decay)
        for optimizer, lr in zip(self.optimizers, (recipe.matrix_lr, recipe.other_lr), strict=True):
            for group in optimizer.param_groups:
                group["lr"] = lr * factor
            optimizer.step()
            optimizer.zero_grad()
        self.step += 1
        return total

    @property
    def documents_seen(self) -> int:
        """Documents taken from the streams so far."""
        return sum(stream.position for stream in self.streams) - sum(FIRST_DOCUMENTS)

    @torch.no_grad()
    def validate(self) -> float:
        """Mean loss on held-out documents, in nats per token."""
        losses = [self.model.loss(micro).item() for micro in self.validation_ids.split(2)]
        return sum(losses) / len(losses)

    def train(self, save_to: Path | None = None, save_every: int = 50) -> None:
        """Go on to the last step, with a line of progress and a saved state now and then."""
        cpu, wall, recent = time.process_time(), time.monotonic(), []
        while self.step < self.recipe.steps:
            recent.append(self.train_step())
            last = self.step == self.recipe.steps
            if self.step % self.recipe.validate_every == 0 or last or self.step == 1:
                now_cpu, now_wall = time.process_time(), time.monotonic()
                self.cpu_seconds += now_cpu - cpu
                self.wall_seconds += now_wall - wall
                cpu, wall = now_cpu, now_wall
                self.curve.append(
                    {
                        "step": self.step,
                        "train_loss": round(sum(recent) / len(recent), 4),
                        "held_out_loss": round(self.validate(), 4),
                        "cpu_seconds": round(self.cpu_seconds, 1),
                        "wall_seconds": round(self.wall_seconds, 1),
                    }
                )
                recent = []
                print(json.dumps(self.curve[-1]), flush=True)
            if save_to and (self.step % save_every == 0 or last):
                now_cpu, now_wall = time.process_time(), time.monotonic()
                self.cpu_seconds += now_cpu - cpu
                self.wall_seconds += now_wall - wall
                cpu, wall = now_cpu, now_wall
                self.save(save_to)

    def save(self, folder: Path) -> None:
        """Write the whole state; a crash while writing leaves the state before it intact."""
        state = {
            "model": self.model.state_dict(),
            "optimizers": [optimizer.state_dict() for optimizer in self.optimizers],
            "streams": [(stream.position, stream.rest) for stream in self.streams],
            "step": self.step,
            "curve": self.curve,
            "seconds": (self.cpu_seconds, self.wall_seconds),
            "recipe": asdict(self.recipe),
        }
        torch.save(state, folder / "state.new")
        (folder / "state.new").replace(folder / "state.pt")

    def resume(self, folder: Path) -> None:
        """Continue from a saved state."""
        state = torch.load(folder / "state.pt", weights_only=True)
        self.model.load_state_dict(state["model"])
        for optimizer, saved in zip(self.optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
        self.streams = self.open_streams(state["streams"])
        self.step, self.curve = state["step"], state["curve"]
        self.cpu_seconds, self.wall_seconds = state["seconds"]


def smoke() -> tuple[float, float]:
    """Train a smaller model for a dozen steps; the held-out loss before and after."""
    tokenizer = train_tokenizer(SMOKE.seed, count=400)
    run = Run(SMOKE, SMOKE_CONFIG, tokenizer)
    before = run.validate()
    run.train()
    return before, run.validate()


def main() -> None:
    """Train, resume, or export, as the arguments say."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--smoke", action="store_true", help="a few seconds, a smaller model")
    parser.add_argument("--out", type=Path, help="folder for the state and the tokenizer")
    parser.add_argument("--export", type=Path, help="write the checkpoint of --out to this folder")
    parser.add_argument("--workers", type=int, default=2, help="threads that share a step")
    parser.add_argument("--steps", type=int, default=Recipe.steps)
    parser.add_argument("--decay", type=int, default=Recipe.decay)
    parser.add_argument("--seed", type=int, default=Recipe.seed)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.smoke:
        before, after = smoke()
        print(f"held-out loss {before:.3f} -> {after:.3f}")
        if not after < before - 0.5:
            sys.exit("The loss did not go down by 0.5 nats: the training loop is broken.")
        return
    if arguments.out is None:
        parser.error("give --out FOLDER, or --smoke")
    arguments.out.mkdir(parents=True, exist_ok=True)
    recipe = Recipe(seed=arguments.seed, steps=arguments.steps, decay=arguments.decay)
    tokenizer_path = arguments.out / "tokenizer.json"
    if not tokenizer_path.exists():
        train_tokenizer(recipe.seed).save(str(tokenizer_path))
    run = Run(recipe, TinyConfig(), Tokenizer.from_file(str(tokenizer_path)), arguments.workers)
    if (arguments.out / "state.pt").exists():
        run.resume(arguments.out)
        print(f"resumed at step {run.step}", flush=True)
    run.train(arguments.out)
    if arguments.export:
        export(run, arguments.export, workers=arguments.workers)


if __name__ == "__main__":
    main()
