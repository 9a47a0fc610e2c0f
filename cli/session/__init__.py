"""`fitcheck` without a model: a session that remembers the model, the card and the flags."""
