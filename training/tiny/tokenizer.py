"""The tiny model's tokenizer: byte-level BPE with 2,048 tokens, trained on the training split."""

from __future__ import annotations

from itertools import islice

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from training.tiny.corpus import documents

VOCAB_SIZE = 2048
END_OF_TEXT = "<|endoftext|>"
PADDING = "<|pad|>"
TRAINING_DOCUMENTS = 20_000


def train_tokenizer(seed: int, count: int = TRAINING_DOCUMENTS) -> Tokenizer:
    """A byte-level BPE: every text survives encode and decode unchanged. Token 0 ends a text."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB_SIZE,
        special_tokens=[END_OF_TEXT, PADDING],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    texts = (document.text for document in islice(documents("train", seed), count))
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer
