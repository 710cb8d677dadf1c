"""A serving loop in miniature: a scheduler over a paged KV cache."""
