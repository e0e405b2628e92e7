"""labkit: tensor, pipeline and expert parallelism, and the prefill/decode split, on real ranks."""
