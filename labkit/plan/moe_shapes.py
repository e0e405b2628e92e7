"""The matrices of a mixture-of-experts block: router, routed experts, shared experts."""

from __future__ import annotations

from labkit.plan.config_fields import ConfigFields
from labkit.plan.family_assembly import whole_number
from labkit.plan.layer_shapes import gated_mlp_matrices, norm, vocabulary
from labkit.plan.model import Experts
from labkit.plan.weights import Matrix, Split


def router(
    name: str, num_experts: int, hidden_size: int, *, bias: bool = False, correction: str = ""
) -> tuple[Matrix, ...]:
    """The router, which every rank holds whole: every rank must know where a token goes.

    `correction` names the bias that is added to the scores only to choose the experts.
    """
    gate = Matrix(name, "router", num_experts, hidden_size, bias=bias)
    return (gate, Matrix(correction, "router", num_experts, 1)) if correction else (gate,)


def expert_matrices(
    hidden_size: int,
    experts: Experts,
    prefix: str,
    names: tuple[str, str, str] = ("gate_proj", "up_proj", "down_proj"),
    *,
    bias: bool = False,
) -> tuple[Matrix, ...]:
    """Gate, up and down projection of every routed expert, named as the first expert's."""
    gate, up, down = (f"{prefix}.{name}" for name in names)
    width = experts.intermediate_size

    def matrix(name: str, out_features: int, in_features: int, split: Split) -> Matrix:
        return Matrix(
            name,
            "experts",
            out_features,
            in_features,
            split,
            copies=experts.num_experts,
            active=experts.top_k,
            bias=bias,
        )

    return (
        matrix(gate, width, hidden_size, Split.COLUMN),
        matrix(up, width, hidden_size, Split.COLUMN),
        matrix(down, hidden_size, width, Split.ROW),
    )


def shared_expert_matrices(
    hidden_size: int, width: int, prefix: str, *, gate: str = "", bias: bool = False
) -> tuple[Matrix, ...]:
    """An MLP that every token takes besides its experts; `gate` names what weighs its output."""
    mlp = gated_mlp_matrices(hidden_size, width, prefix=prefix, part="shared experts", bias=bias)
    return (*mlp, Matrix(gate, "shared experts", 1, hidden_size)) if gate else mlp


def read_experts(
    fields: ConfigFields,
    count: str,
    top_k: str,
    width: str,
    num_shared_experts: int = 0,
) -> Experts:
    """The routed experts, from the fields that hold their number, a token's, and their width."""
    experts = Experts(
        fields.positive_int(count),
        fields.positive_int(top_k),
        fields.positive_int(width),
        num_shared_experts,
    )
    refuse_more_than_there_are(fields, top_k, experts)
    return experts


def refuse_more_than_there_are(fields: ConfigFields, top_k: str, experts: Experts) -> None:
    """Raise UnsupportedModelError if a token uses more experts than a layer has."""
    if experts.top_k > experts.num_experts:
        raise fields.refuse(top_k, f"a token cannot use more than the {experts.num_experts} there")


def deepseek_experts(
    fields: ConfigFields, *, correction: bool
) -> tuple[tuple[Matrix, ...], Experts]:
    """Router, routed experts and shared experts, these as one MLP of their joint width."""
    hidden, shared = fields.positive_int("hidden_size"), whole_number(fields, "n_shared_experts", 0)
    experts = read_experts(
        fields, "n_routed_experts", "num_experts_per_tok", "moe_intermediate_size", shared
    )
    block = (
        *router(
            "mlp.gate",
            experts.num_experts,
            hidden,
            correction="mlp.gate.e_score_correction_bias" if correction else "",
        ),
        *expert_matrices(hidden, experts, "mlp.experts.0"),
    )
    if not shared:
        return block, experts
    width = shared * experts.intermediate_size
    return (*block, *shared_expert_matrices(hidden, width, "mlp.shared_experts")), experts


def prediction_extra(fields: ConfigFields) -> tuple[Matrix, ...]:
    """What one multi-token prediction layer has besides its decoder layer, as checkpoints do."""
    hidden, vocab = fields.positive_int("hidden_size"), fields.positive_int("vocab_size")
    return (
        norm("enorm", hidden),
        norm("hnorm", hidden),
        Matrix("eh_proj", "MTP", hidden, 2 * hidden),
        norm("shared_head.norm", hidden),
        vocabulary("embed_tokens", "embedding", vocab, hidden),
        vocabulary("shared_head.head", "LM head", vocab, hidden),
    )
