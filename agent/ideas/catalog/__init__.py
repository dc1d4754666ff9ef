"""The offline expert: one file per idea, each recognising on the syntax tree where it applies and saying why."""
