"""What the serving texts say about each term: paraphrases of its meaning, reason and price.

`{name}` is the person in the text and `{n}` the number of ranks; both are filled in per document.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Term:
    """Sentences about one term; a text takes one or two of each kind."""

    meaning: tuple[str, ...]
    reason: tuple[str, ...]
    price: tuple[str, ...]
    picture: str


TERMS: dict[str, Term] = {
    "an all-reduce": Term(
        (
            "An all-reduce adds up one tensor from every rank and gives the sum to all of them.",
            "In an all-reduce every rank brings a tensor, and every rank leaves with the sum.",
        ),
        (
            "It is needed when each rank has only a part of a sum.",
            "Row parallel layers use it, because each rank computes a part of the result.",
        ),
        (
            "Every rank must wait until the last rank has arrived.",
            "The more ranks there are, the more steps it takes.",
        ),
        "It is like friends who put their coins together and all learn the total.",
    ),
    "an all-gather": Term(
        (
            "An all-gather collects the parts from all ranks and gives the whole to each of them.",
            "In an all-gather every rank brings a part, and every rank leaves with all the parts.",
        ),
        (
            "It is needed when each rank has a piece of a tensor and all of them need the whole.",
            "The vocabulary is split over the ranks, so the logits are gathered at the end.",
        ),
        (
            "The result is larger than what each rank had before.",
            "Each rank needs memory for the whole tensor.",
        ),
        "It is like friends who each bring one page, and all go home with the whole book.",
    ),
    "a reduce-scatter": Term(
        (
            "A reduce-scatter adds up the tensors and leaves each rank with one part of the sum.",
            "In a reduce-scatter the sum is cut into parts, and each rank keeps one of them.",
        ),
        (
            "It is the first half of an all-reduce, and an all-gather is the second half.",
            "It is used when no rank needs the whole sum.",
        ),
        (
            "It moves half as many bytes as an all-reduce.",
            "After it no rank has the whole result.",
        ),
        "It is like friends who add up their coins and then share them out.",
    ),
    "a broadcast": Term(
        (
            "A broadcast sends a tensor from one rank to all the others.",
            "In a broadcast one rank speaks, and all the other ranks listen.",
        ),
        (
            "It is used when one rank knows something that all ranks must know.",
            "With it all ranks can agree on the next token.",
        ),
        (
            "The other ranks can do nothing until the message is there.",
            "All ranks must know which rank is the source.",
        ),
        "It is like a teacher who reads a story to the class.",
    ),
    "an all-to-all": Term(
        (
            "In an all-to-all every rank sends a different part to every other rank.",
            "An all-to-all is an exchange in which each rank has a letter for each other rank.",
        ),
        (
            "Expert parallelism uses it to bring each token to its expert.",
            "It is needed when the work moves to where the weights are.",
        ),
        (
            "If one rank gets more than the others, all of them wait for it.",
            "The parts may have different sizes, so the ranks must agree on them first.",
        ),
        "It is like a post office where every town sends a bag to every other town.",
    ),
    "the KV cache": Term(
        (
            "The KV cache keeps the keys and values of all tokens that the model has seen.",
            "The KV cache is the memory of the model for one request.",
        ),
        (
            "Without it the model would compute every old token again at each step.",
            "With it each new token needs only one pass over one position.",
        ),
        (
            "It grows with every token, and long requests need much memory.",
            "When it is full, a request must wait or give up its place.",
        ),
        "It is like notes that you keep so that you need not read the book again.",
    ),
    "prefill": Term(
        (
            "Prefill is the first phase of a request, in which the whole prompt is read at once.",
            "In prefill the model computes all tokens of the prompt in one pass.",
        ),
        (
            "It fills the KV cache, so that decode can begin.",
            "All tokens of the prompt are known, so they can be computed together.",
        ),
        (
            "It needs much computing, so a long prompt delays the first token.",
            "While a long prefill runs, other requests may have to wait.",
        ),
        "It is like reading the whole question before you write the answer.",
    ),
    "decode": Term(
        (
            "Decode is the second phase of a request, in which the tokens come one by one.",
            "In decode each step makes one new token for each request.",
        ),
        (
            "The next token depends on the last one, so the steps cannot run together.",
            "It reads all weights for each token, so memory sets the speed.",
        ),
        (
            "One request alone uses only a small part of the computing power.",
            "A larger batch makes it better, because the weights are read once for all requests.",
        ),
        "It is like writing an answer word by word.",
    ),
    "a batch": Term(
        (
            "A batch is a group of requests that the model computes together.",
            "Requests in one batch go through the model at the same time.",
        ),
        (
            "The weights are read once for the whole batch.",
            "With it more tokens come out of the same machine in a second.",
        ),
        (
            "Each request in it needs its own KV cache.",
            "If it is too large, each user waits longer.",
        ),
        "It is like a bus that takes many people on one trip.",
    ),
    "tensor parallelism": Term(
        (
            "Tensor parallelism cuts each layer into parts, one for each rank.",
            "With tensor parallelism all ranks work on the same layer at the same time.",
        ),
        (
            "Each rank needs memory only for its own part of the weights.",
            "It makes one token faster, because each rank reads fewer weights.",
        ),
        (
            "It needs an all-reduce after attention and another one after the MLP.",
            "The number of heads must divide by the number of ranks.",
        ),
        "It is like friends who carry one heavy table together.",
    ),
    "pipeline parallelism": Term(
        (
            "Pipeline parallelism gives each rank some of the layers.",
            "With pipeline parallelism the first rank has the first layers and the last rank has "
            "the last ones.",
        ),
        (
            "It sends little data, because only the result of the last layer moves on.",
            "It helps when the model is too large for one machine.",
        ),
        (
            "A rank that has nothing to do yet is a bubble in the pipeline.",
            "One token alone does not become faster.",
        ),
        "It is like a row of cooks, and each of them does one step.",
    ),
    "data parallelism": Term(
        (
            "Data parallelism puts the whole model on every rank and shares out the requests.",
            "With data parallelism each rank has all weights but only some of the requests.",
        ),
        (
            "The ranks need not talk to each other, so it is simple and fast.",
            "It serves more users with more machines.",
        ),
        (
            "Every rank needs memory for all the weights.",
            "It does not make a single request faster.",
        ),
        "It is like a shop that opens a second door with a second seller.",
    ),
    "expert parallelism": Term(
        (
            "Expert parallelism puts different experts on different ranks.",
            "With expert parallelism each token travels to the rank that has its expert.",
        ),
        (
            "A model with many experts is too large for one rank.",
            "Each token needs only a few experts, so most weights are not read.",
        ),
        (
            "It needs an all-to-all before the experts and another one after them.",
            "If many tokens choose the same expert, one rank has too much work.",
        ),
        "It is like a hospital where each patient goes to the right doctor.",
    ),
    "a rank": Term(
        (
            "A rank is one process in a group of processes that work together.",
            "Each process in the group is a rank, and each rank has its own number.",
        ),
        (
            "The numbers begin at zero, so each rank knows which part is its own.",
            "Every rank runs the same program with a different part of the data.",
        ),
        (
            "If one rank stops, the others wait for it.",
            "All ranks must call the same collectives in the same order.",
        ),
        "It is like a rower in a boat, and all of them pull together.",
    ),
    "a scheduler": Term(
        (
            "A scheduler decides which requests run in the next step.",
            "The scheduler looks at all waiting requests and chooses the next batch.",
        ),
        (
            "Requests come and go at any time, so the batch changes at every step.",
            "It keeps the machine busy and lets no request wait forever.",
        ),
        (
            "It must know how much room the KV cache has.",
            "A long prefill can delay all the others, so it may cut it into pieces.",
        ),
        "It is like a waiter who decides which table is served next.",
    ),
    "latency": Term(
        (
            "Latency is the time that one user waits for an answer.",
            "Latency tells how long it takes until a token comes.",
        ),
        (
            "A user who reads along wants the first token soon.",
            "It shows what a single request feels.",
        ),
        (
            "A large batch makes it worse.",
            "To make it shorter, the work of one token must be split over the ranks.",
        ),
        "It is like the time that one letter needs to arrive.",
    ),
    "throughput": Term(
        (
            "Throughput is the number of tokens that the machine makes in a second.",
            "Throughput tells how much work is done for all users together.",
        ),
        (
            "It decides how many machines are needed for all users.",
            "A large batch makes it better, because the weights are read once for all.",
        ),
        (
            "More of it often means that each user waits longer.",
            "It does not tell how long one user waits.",
        ),
        "It is like the number of letters that arrive in one day.",
    ),
    "an attention head": Term(
        (
            "An attention head looks back at all tokens and takes what it needs from them.",
            "In an attention head each token asks a question with its query and finds keys.",
        ),
        (
            "Each head can look for something different.",
            "The heads do not depend on each other, so each rank can take some of them.",
        ),
        (
            "The longer the text, the more keys it must read.",
            "Its keys and values need room in the KV cache.",
        ),
        "It is like a reader who looks for one word on all pages.",
    ),
    "sampling": Term(
        (
            "Sampling chooses the next token from the logits.",
            "In sampling each token has a chance, and one of them is drawn.",
        ),
        (
            "With a low temperature the best token wins almost every time.",
            "Without it the model would always give the same answer.",
        ),
        (
            "All ranks must choose the same token, so they use the same seed.",
            "With a high temperature the text becomes wild.",
        ),
        "It is like drawing a card from a box in which some cards lie more than once.",
    ),
    "a page of the cache": Term(
        (
            "A page of the cache holds the keys and values of a fixed number of tokens.",
            "The cache is cut into pages, and each request has a list of its pages.",
        ),
        (
            "The pages of one request need not lie next to each other, so no room is lost.",
            "Two requests with the same beginning can share their first pages.",
        ),
        (
            "A table must say where each page is.",
            "The last page of a request is often not full.",
        ),
        "It is like a book whose pages lie in many drawers, with a list that says where.",
    ),
}
