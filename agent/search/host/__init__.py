"""The host code that a changed plan needs. We write it from the plan and the user's own launch sites; no model does."""
