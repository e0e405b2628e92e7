"""Tensor parallelism inside a node and stages across nodes, or the other way round.

Which of the two crosses the network decides what the network carries: all-reduces twice a layer, or
a hidden state once a stage.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from labkit.plan.layout import Layout
from labkit.plan.quantity_text import bytes_text, duration
from labkit.plan.question import Question
from labkit.plan.step_system import Fidelity
from labkit.plan.step_work import element_bytes, stage_works
from labkit.plan.steptime import StepTime, decode_step


@dataclass(frozen=True)
class Order:
    """One order on the GPUs of a replica.

    Attributes:
        tp_inside: whether the ranks of a TP group are neighbours; if not, the stages are.
        decode: a step of one replica.
        network_bytes: payload of the step's all-reduces that cross nodes, or of the hidden states
            that do; what an algorithm makes of a payload comes on top.
    """

    tp_inside: bool
    decode: StepTime
    network_bytes: float


@dataclass(frozen=True)
class Orders:
    """Both orders of one layout."""

    layout: Layout
    tp_inside: Order
    pp_inside: Order

    @property
    def sentence(self) -> str:
        """What the two send over the network, and what a step takes."""
        ours, swapped = self.tp_inside, self.pp_inside
        return (
            f"With TP {self.layout.tp} inside the node and PP {self.layout.pp} across nodes, "
            f"{bytes_text(ours.network_bytes)} a step cross the network; swapped it would be "
            f"{bytes_text(swapped.network_bytes)}, and the step "
            f"{duration(swapped.decode.seconds)} instead of "
            f"{duration(ours.decode.seconds)}."
        )


def crosses_nodes(question: Question, layout: Layout, *, tp_inside: bool = True) -> bool:
    """Whether a TP group has GPUs of several nodes."""
    step = 1 if tp_inside else layout.pp
    return (layout.tp - 1) * step >= question.links.gpus_per_node


def compare_orders(question: Question, layout: Layout, batch: int) -> Orders | None:
    """Both orders of a layout; None where TP or PP is 1, or a replica lies inside one node.

    batch: sequences of a replica.
    """
    node = question.links.gpus_per_node
    if layout.tp == 1 or layout.pp == 1 or layout.replica_size <= node or layout.tp > node:
        return None
    return Orders(
        layout, _order(question, layout, batch, True), _order(question, layout, batch, False)
    )


def all_reduced_bytes(question: Question, layout: Layout, batch: int) -> float:
    """The payload of all all-reduces that one TP group makes in a step, all stages together."""
    payload = batch / layout.dp * question.model.hidden_size * element_bytes(question.model)
    if question.fidelity is Fidelity.TEXTBOOK:
        return 2 * question.model.num_layers * payload
    return payload * sum(work.all_reduces for work in stage_works(question.model, layout))


def _order(question: Question, layout: Layout, batch: int, tp_inside: bool) -> Order:
    system = replace(question.system, tp_inside=tp_inside)
    decode = decode_step(question.model, system, layout, batch, question.context, question.options)
    hidden = batch / layout.dp * question.model.hidden_size * element_bytes(question.model)
    sent = all_reduced_bytes(question, layout, batch) if crosses_nodes(
        question, layout, tp_inside=tp_inside
    ) else 0.0  # fmt: skip
    sent += hidden * _network_hops(question, layout, tp_inside)
    return Order(tp_inside, decode, sent)


def _network_hops(question: Question, layout: Layout, tp_inside: bool) -> int:
    """Borders between stages that lie between nodes."""
    size, node = layout.stage_size if tp_inside else 1, question.links.gpus_per_node
    return sum(
        (stage * size) // node != ((stage + 1) * size) // node for stage in range(layout.pp - 1)
    )
