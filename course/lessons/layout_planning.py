"""Lesson 03: layout planning. Guide, trade-offs, references."""

from __future__ import annotations

from course.lessons.content import Guide, Lesson, Reference
from course.lessons.layout_planning_map import MAP
from course.lessons.layout_planning_pitfalls import PITFALLS
from course.lessons.layout_planning_questions import QUESTIONS
from course.lessons.layout_planning_quizzes import QUIZZES

LESSON = Lesson(
    name="03_layout_planning",
    title="Which layouts fit, how fast, and why not",
    question="Given a model's config, some GPUs and a limit on the time per token: which layouts "
    "are possible, which is best for what, and how far can you trust the answer?",
    gist=(
        "**Shapes and bytes decide what is possible.** A layout must divide the model's heads, "
        "widths and groups, and its fullest rank must have room for weights and cache.",
        "**A step is a sum of terms**: weights and cache to read, arithmetic, meetings, and "
        "overheads that no degree divides. Which term leads decides which layout wins.",
        "**Objective and limits decide which is best.** Latency, throughput and cost have "
        "different winners, and a model is as good as its error on steps it was not fitted to.",
    ),
    decisions=(
        "Whether a model fits, with how many tokens of cache, and which rank or stage is the "
        "fullest.",
        "Which layouts are legal, and what repairs one that is not.",
        "Which layout to take under a stated objective and SLO, why the others lose, and how far "
        "off the prediction may be.",
    ),
    guide=Guide(
        prefer=(
            "Replicas: the model fits on few GPUs, and many users come.",
            "Tensor parallelism: one user's time per token counts, or the model does not fit, and "
            "the GPUs share fast links.",
            "Pipeline stages: the model needs more GPUs than share a fast link, and enough "
            "requests are in flight to fill all stages.",
            "Expert parallelism with copies of attention: a large mixture of experts at large "
            "batches, above all with latent attention.",
        ),
        avoid=(
            "A degree that cuts a head, a quantisation group or a matrix unevenly: it is refused, "
            "or wrong.",
            "Tensor parallelism across nodes: every layer would wait for the network, twice.",
            "More stages than requests in flight: most of them idle.",
            "A layout chosen from the data sheet alone: overheads that no degree divides turn "
            "close calls round.",
        ),
    ),
    map=MAP,
    pros=(
        "Hundreds of layouts are compared before one is started, and no GPU is needed for it.",
        "Every refusal comes with all its reasons, and with what would repair it.",
        "The terms show what to change: a faster link, a smaller format, another degree.",
        "Calibrated on a few recorded steps, it predicts others.",
    ),
    cons=(
        "A model of a step is not a step: say its error beside its answer.",
        "Presets age: kernels, engines and drivers change their constants.",
        "Mean lengths and even load are assumed: bursts, long tails and hot experts are not in it.",
        "Activation and runtime memory are stated terms, and engines differ.",
    ),
    pitfalls=PITFALLS,
    questions=QUESTIONS,
    quizzes=QUIZZES,
    references=(
        Reference(
            "Efficiently Scaling Transformer Inference",
            "Reiner Pope et al.",
            2022,
            "https://arxiv.org/abs/2211.05102",
            "Layouts chosen by counting bytes and FLOPs. Read it for the method of this lesson.",
        ),
        Reference(
            "Roofline: an insightful visual performance model for multicore architectures",
            "Samuel Williams, Andrew Waterman, David Patterson",
            2009,
            "https://doi.org/10.1145/1498765.1498785",
            "The model behind weights over bandwidth, and when arithmetic takes over.",
        ),
        Reference(
            "Efficient Memory Management for Large Language Model Serving with PagedAttention",
            "Woosuk Kwon et al.",
            2023,
            "https://arxiv.org/abs/2309.06180",
            "What a KV block is, and why engines count capacity in blocks.",
        ),
        Reference(
            "GPipe: Efficient Training of Giant Neural Networks using Pipeline Parallelism",
            "Yanping Huang et al.",
            2018,
            "https://arxiv.org/abs/1811.06965",
            "Microbatches and the bubble.",
        ),
        Reference(
            "GPTQ: Accurate Post-Training Quantization for Generative Pre-trained Transformers",
            "Elias Frantar, Saleh Ashkboos, Torsten Hoefler, Dan Alistarh",
            2022,
            "https://arxiv.org/abs/2210.17323",
            "Where groups of weights with one scale come from.",
        ),
        Reference(
            "Taming Throughput-Latency Tradeoff in LLM Inference with Sarathi-Serve",
            "Amey Agrawal et al.",
            2024,
            "https://arxiv.org/abs/2403.02310",
            "Prefills that share a step with decodes, and what that does to the time per token.",
        ),
        Reference(
            "DistServe: Disaggregating Prefill and Decoding for Goodput-optimized Large Language "
            "Model Serving",
            "Yinmin Zhong et al.",
            2024,
            "https://arxiv.org/abs/2401.09670",
            "Goodput under two limits, and pools with layouts of their own.",
        ),
        Reference(
            "DeepSeek-V3 Technical Report",
            "DeepSeek-AI",
            2024,
            "https://arxiv.org/abs/2412.19437",
            "Section 3.4 has the prefill and decode units that this lesson writes as layouts.",
        ),
        Reference(
            "Vidur: A Large-Scale Simulation Framework For LLM Inference",
            "Amey Agrawal et al.",
            2024,
            "https://arxiv.org/abs/2405.05465",
            "A simulator of whole workloads: what a model of one step leaves out.",
        ),
        Reference(
            "AIConfigurator: Lightning-Fast Configuration Optimization for Multi-Framework LLM "
            "Serving",
            "Tianhao Xu et al.",
            2026,
            "https://arxiv.org/abs/2601.06288",
            "The same search on tables of measured kernels; the recorded rows of this lesson ship "
            "with it.",
        ),
    ),
)
