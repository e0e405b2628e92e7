"""Exercise: how many all-reduces a decode step makes, and how many bytes they carry."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from numbers import Real
from typing import Any

from course.exercises.tensor_cases import mistakes, on_every_rank
from course.grading.exercise import Case, Exercise, Outcome, case_weight

MESSAGES = {
    "counted-at-one-rank": "One rank alone has nobody to talk to, and yet there are all-reduces.",
    "one-per-layer": "There is one all-reduce for each layer. A layer has two parts that end in a "
    "weight cut along its input features.",
    "no-embedding": "The layers are counted right. Before the first of them, the ranks have a "
    "vocabulary that is cut as well.",
    "backward-counted": "Twice as many all-reduces as one pass through the model makes: training "
    "has a backward pass, decoding has none.",
    "four-per-layer": "There are four all-reduces for each layer. That is one for each matrix "
    "product, or forward and backward of training. Decoding has no backward pass, and a weight "
    "cut along its output features sends nothing.",
    "one-per-matrix": "There is one all-reduce for each of a layer's seven matrices. A weight cut "
    "along its output features sends nothing.",
    "counts-the-sampler": "There is one all-reduce too many outside the layers. The LM head gives "
    "finished logits, with nothing to add up, and the next token is picked with an all-gather, "
    "which is another collective.",
    "times-tp": "The number of all-reduces grows with the ranks. All ranks take part in the same "
    "one, and that is one all-reduce.",
    "payload-divided-by-tp": "The payload shrinks with the ranks. A partial sum is as large as "
    "the whole output: the ranks cut the inputs of that product, not its outputs.",
    "payload-times-tp": "The payload grows with the ranks. It is what one rank passes in.",
    "payload-of-one": "The number of all-reduces is right, the payload is that of a single one.",
    "wire-bytes": "These are the bytes a rank sends in a ring, which depend on the ranks. The "
    "payload is the tensor that it passes in.",
    "payload-in-elements": "The payload counts elements, not bytes.",
    "payload-of-one-sequence": "The payload has no batch in it: every sequence of the batch "
    "brings a vector of its own.",
}


def _answer(outcome: Outcome) -> tuple[float, float] | None:
    """(all-reduces, payload) of the dict that was returned, or None if it is none such."""
    if not outcome.returned or not isinstance(outcome.returned[0], Mapping):
        return None
    given = outcome.returned[0]
    counted, payload = given.get("all_reduces"), given.get("payload_bytes")
    if not isinstance(counted, Real) or not isinstance(payload, Real):
        return None
    return float(counted), float(payload)


def _counts(layers: int, tp: int) -> Iterator[tuple[str, int]]:
    """Wrong numbers of all-reduces."""
    yield from (("one-per-layer", 1 + layers), ("one-per-layer", layers))
    yield "no-embedding", 2 * layers
    yield "backward-counted", 2 * (1 + 2 * layers)
    yield from (("four-per-layer", 1 + 4 * layers), ("four-per-layer", 4 * layers))
    yield from (("one-per-matrix", 1 + 7 * layers), ("one-per-matrix", 7 * layers))
    yield "counts-the-sampler", 2 + 2 * layers
    yield "times-tp", tp * (1 + 2 * layers)


def _payloads(each: int, total: int, tp: int, batch: int, size: int) -> Iterator[tuple[str, float]]:
    """Wrong payloads beside the right number of all-reduces."""
    yield "payload-divided-by-tp", total / tp
    yield "payload-times-tp", total * tp
    yield from (("payload-of-one", each), ("payload-of-one", each / tp))
    yield "wire-bytes", total * 2 * (tp - 1) / tp
    yield "payload-in-elements", total / size
    yield "payload-of-one-sequence", total / batch


def _shown(
    right: tuple[int, int], layers: int, tp: int, batch: int, hidden_size: int, size: int
) -> Iterator[tuple[str, Callable[[Outcome], bool]]]:
    counted, total = right
    if tp == 1:
        yield (
            "counted-at-one-rank",
            lambda outcome: (answer := _answer(outcome)) is not None and answer[0] > 0,
        )
        return
    for key, wrong in _counts(layers, tp):
        if wrong != counted:
            yield key, _shows(0, wrong)
    for key, wrong_payload in _payloads(batch * hidden_size * size, total, tp, batch, size):
        if wrong_payload != total:
            yield key, _shows(1, wrong_payload)


def _shows(field: int, wrong: float) -> Callable[[Outcome], bool]:
    """Whether this field of the answer is `wrong`, within one (a division may be rounded)."""

    def shows(outcome: Outcome) -> bool:
        answer = _answer(outcome)
        return answer is not None and abs(answer[field] - wrong) < 1

    return shows


def _case(layers: int, tp: int, batch: int, hidden_size: int, bytes_per_element: int) -> Case:
    def arguments(rank: int) -> Mapping[str, Any]:
        return {
            "num_layers": layers,
            "tp": tp,
            "batch": batch,
            "hidden_size": hidden_size,
            "bytes_per_element": bytes_per_element,
        }

    counted = 1 + 2 * layers if tp > 1 else 0
    total = counted * batch * hidden_size * bytes_per_element
    sizes = (layers, tp, batch, hidden_size, bytes_per_element)
    return Case(
        name=f"{layers} layers, TP {tp}, batch {batch}, hidden {hidden_size}, "
        f"{bytes_per_element} B each",
        ranks=0,
        arguments=arguments,
        expected=on_every_rank({"all_reduces": counted, "payload_bytes": total}),
        mistakes=mistakes(MESSAGES, (), _shown((counted, total), *sizes)),
        weight=case_weight(tp),
    )


def _visible(seed: int) -> tuple[Case, ...]:
    return (_case(5, 4, 3, 48, 2), _case(30, 3, 7, 576, 2), _case(30, 1, 7, 576, 2))


def _hidden(seed: int) -> tuple[Case, ...]:
    return (_case(80, 8, 64, 8192, 2), _case(24, 7, 6, 896, 4), _case(32, 1, 5, 4096, 2))


EXERCISE = Exercise(
    name="predict_collectives",
    chapter="02_tensor_parallel",
    title="Predict the collectives of one decode step",
    function="predict_collectives",
    parameters=("num_layers", "tp", "batch", "hidden_size", "bytes_per_element"),
    points=10,
    visible=_visible,
    hidden=_hidden,
)
