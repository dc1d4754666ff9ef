"""How a language model is reached: an OpenAI-compatible endpoint, or answers that are played back."""
