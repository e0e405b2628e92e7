"""Decoder models, their checkpoints and their tokenizer."""
