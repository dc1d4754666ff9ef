"""How a language model is reached. The offline catalogue in ``agent.ideas`` needs none."""
