"""One file per method of the protocol. Each has ``register(server)``, which is called once the client is known."""
