"""A part of Pullback; see ARCHITECTURE.md."""
