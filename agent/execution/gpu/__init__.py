"""Disposable background processes that run device code on a real GPU."""
