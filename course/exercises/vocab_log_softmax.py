"""Exercise: the log-probability of a token in a vocabulary that is cut over the ranks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import torch
from torch import Tensor

from course.exercises.outcome_signs import right_on_one_rank_only, sends_its_logits
from course.grading.exercise import Case, Exercise, Mistake, Outcome
from labkit.plan.shard import balanced_ranges

TOLERANCE = 1e-9


def _case(
    name: str,
    seed: int,
    *,
    ranks: int,
    vocab_size: int,
    rows: int = 4,
    large: bool = False,
    without: int | None = None,
) -> Case:
    """Targets take turns over the ranks, and none is its row's best.

    `without`: a rank that holds no row's target, and must join the collectives all the same.
    `large`: row 0 lies around 800, row 1's target 800 below, rank 0's part of row 2 800 above.
    """
    random = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(rows, vocab_size, generator=random, dtype=torch.float64)
    blocks = balanced_ranges(vocab_size, ranks)
    draws = torch.randint(1 << 20, (rows,), generator=random).tolist()
    holders = [block for rank, block in enumerate(blocks) if rank != without]
    owners = [holders[(row - 1) % len(holders)] for row in range(rows)]
    targets = torch.tensor([own[draw % len(own)] for own, draw in zip(owners, draws, strict=True)])
    logits[torch.arange(rows), targets] = logits.amin(dim=1) - 1
    if large:
        logits[0] += 800
        logits[1, targets[1]] -= 800
        logits[2, : len(blocks[0])] += 800

    def arguments(rank: int) -> Mapping[str, Tensor | int]:
        mine = blocks[rank]
        return {
            "logits": logits[:, mine.start : mine.stop].clone(),
            "first_id": mine.start,
            "targets": targets.clone(),
        }

    def expected(rank: int) -> Tensor:
        return logits.log_softmax(dim=1).gather(1, targets[:, None]).squeeze(1)

    return Case(name, ranks, arguments, expected, _mistakes(logits, blocks, targets, expected(0)))


def _mistakes(
    logits: Tensor, blocks: Sequence[range], targets: Tensor, right: Tensor
) -> tuple[Mistake, ...]:
    """logits `[B, V]`, the ids of each rank, targets `[B]`, the right answer `[B]`."""
    ranks = len(blocks)
    parts = [logits[:, block.start : block.stop] for block in blocks]
    tops = torch.stack([part.amax(dim=1) for part in parts])
    lse = torch.stack([part.logsumexp(dim=1) for part in parts])
    top, owner = tops.amax(dim=0), _owners(blocks, targets)
    at_target = logits.gather(1, targets[:, None]).squeeze(1)
    log_total = logits.logsumexp(dim=1)
    local_sums = (lse - tops).exp()  # of exp(logit - the rank's own maximum)
    own_top, own_lse = (of.gather(0, owner[None]).squeeze(0) for of in (tops, lse))

    def summed_over_shift(shift: Tensor) -> Tensor:
        return at_target - shift - (logits - shift[:, None]).exp().sum(dim=1).log()

    def target_not_shared(outcome: Outcome) -> bool:
        """Each row is right on the rank that holds its target, and wrong elsewhere."""
        close = [torch.isclose(value, right, rtol=TOLERANCE) for value in outcome.returned]
        is_owner = torch.arange(ranks)[:, None] == owner
        return ranks > 1 and torch.equal(torch.stack(close), is_owner)

    def told(key: str, message: str, *returns: Callable[[int], Tensor]) -> tuple[Mistake, ...]:
        return tuple(Mistake(key, message, returns=each) for each in returns)

    return (
        Mistake(
            "sends-all-logits",
            "A rank sent as many numbers as it holds logits. With a vocabulary of 150,000 that is "
            "megabytes a step, for an answer of one number per row.",
            shows=sends_its_logits(parts),
        ),
        *told(
            "softmax-within-the-rank",
            "The probability is taken within the part of the vocabulary that one rank holds: "
            "neither the maximum nor the sum of the exponentials has seen the other ranks.",
            lambda _: at_target - own_lse,
        ),
        *told(
            "sum-not-reduced",
            "The sum of the exponentials runs over this rank's ids only.",
            lambda rank: at_target - lse[rank],
            lambda rank: at_target - top - (parts[rank] - top[:, None]).exp().sum(dim=1).log(),
        ),
        *told(
            "local-max-for-global",
            "Each rank subtracted the maximum of its own logits, so the exponentials that were "
            "added up are on a different scale on every rank.",
            lambda _: at_target - own_top - local_sums.sum(dim=0).log(),
            lambda rank: at_target - tops[rank] - local_sums.sum(dim=0).log(),
        ),
        *told(
            "foreign-targets-added",
            "Ranks that do not hold a row's target added some logit of their own to it. Such a "
            "rank must bring nothing to that sum.",
            *_with_foreign_logits(parts, blocks, targets, top, log_total),
        ),
        *told(
            "log-sums-added",
            "The ranks' logarithms were added up. The logarithm of a sum is not the sum of the "
            "logarithms.",
            lambda _: at_target - lse.sum(dim=0),
        ),
        *told(
            "largest-part-for-sum",
            "Of the ranks' sums of exponentials the largest was taken, where all of them count.",
            lambda _: at_target - lse.amax(dim=0),
        ),
        *told(
            "mean-instead-of-sum",
            "The sums of the exponentials were averaged over the ranks, not added.",
            lambda _: right + torch.tensor(float(ranks)).double().log(),
        ),
        *told(
            "shift-on-one-side-only",
            "The maximum was subtracted from the logits under the sum but not from the target's "
            "logit, or the other way round.",
            lambda _: right + top,
            lambda _: right - top,
        ),
        *told(
            "exp-overflows",
            "Nothing was subtracted before exp, and exp of a logit above 709 is infinite in "
            "float64 (above 88 in float32).",
            lambda _: summed_over_shift(torch.zeros_like(top)),
        ),
        *told(
            "exp-overflows",
            "Of the ranks' maxima the smallest was subtracted, so exp of another rank's large "
            "logits is infinite.",
            lambda _: summed_over_shift(tops.amin(dim=0)),
        ),
        *told(
            "maxima-added",
            "The ranks' maxima were added up, which shifts large logits so far down that every "
            "exp of them rounds to 0.",
            lambda _: summed_over_shift(tops.sum(dim=0)),
        ),
        *told(
            "log-of-rounded-probability",
            "The probability was computed first and its logarithm last. A probability below about "
            "1e-324 rounds to 0 in float64, and the logarithm of that is minus infinity.",
            lambda _: ((at_target - top).exp() / (log_total - top).exp()).log(),
            lambda _: right.exp().log(),
        ),
        *told(
            "loss-instead-of-log-probability",
            "The sign is turned: this is the loss, the negative log-probability.",
            lambda _: -right,
        ),
        *told(
            "probability-instead-of-logarithm",
            "This is the probability; its logarithm is asked for.",
            lambda _: right.exp(),
        ),
        Mistake(
            "target-not-shared",
            "A row is right only on the rank that holds its target: the others went on without "
            "the target's logit.",
            shows=target_not_shared,
        ),
        Mistake(
            "only-one-rank",
            "One rank has the right values and the others return something else.",
            shows=right_on_one_rank_only(right, TOLERANCE),
        ),
    )


def _owners(blocks: Sequence[range], targets: Tensor) -> Tensor:
    """The rank that holds each target."""
    stops = torch.tensor([block.stop for block in blocks])
    return (targets[:, None] >= stops).sum(dim=1)


def _with_foreign_logits(
    parts: Sequence[Tensor],
    blocks: Sequence[range],
    targets: Tensor,
    top: Tensor,
    log_total: Tensor,
) -> list[Callable[[int], Tensor]]:
    """Logits read at a wrong column on each rank without the target, and summed, in six ways."""
    totals = [torch.zeros_like(top) for _ in range(3)]
    for part, block in zip(parts, blocks, strict=True):
        width, column = len(block), targets - block.start
        is_foreign = (column < 0) | (column >= width)
        read = (column.clamp(0, width - 1), column.masked_fill(is_foreign, 0), column % width)
        for total, columns in zip(totals, read, strict=True):
            total += part.gather(1, columns[:, None]).squeeze(1)
    shifts = (log_total, log_total + (len(parts) - 1) * top)
    return [partial(_whatever_the_rank, total - shift) for total in totals for shift in shifts]


def _whatever_the_rank(value: Tensor, rank: int) -> Tensor:
    return value


def visible(seed: int) -> tuple[Case, ...]:
    return (
        _case("two ranks, 15 ids", seed, ranks=2, vocab_size=15),
        _case("four ranks, 34 ids", seed + 1, ranks=4, vocab_size=34, rows=6, without=2),
        _case("three ranks, 20 ids, large logits", seed + 2, ranks=3, vocab_size=20, large=True),
        _case("one rank, 6 ids", seed + 3, ranks=1, vocab_size=6, rows=3),
    )


def hidden(seed: int) -> tuple[Case, ...]:
    return (
        _case("three ranks, 31 ids", seed, ranks=3, vocab_size=31, rows=5, without=0),
        _case(
            "two ranks, 41 ids, large logits",
            seed + 1,
            ranks=2,
            vocab_size=41,
            rows=8,
            large=True,
        ),
        _case("four ranks, one id each", seed + 2, ranks=4, vocab_size=4, rows=5),
        _case("one rank, large logits", seed + 3, ranks=1, vocab_size=9, large=True),
    )


EXERCISE = Exercise(
    name="vocab_log_softmax",
    chapter="02_tensor_parallel",
    title="The log-probability of a token in a cut vocabulary",
    function="vocab_log_softmax",
    parameters=("comm", "logits", "first_id", "targets"),
    points=10,
    visible=visible,
    hidden=hidden,
    tolerance=TOLERANCE,
)
