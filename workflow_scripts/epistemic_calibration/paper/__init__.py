"""The paper (arXiv 2606.10777): its published tables, its claims, its toy experiments."""
