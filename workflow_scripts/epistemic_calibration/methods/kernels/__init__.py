"""Loops of our own, where a library's way is much slower.

What they gain on one core, and what holds them to the library's numbers:

- `networks`, `minibatches`: networks that take their steps together, against a module of PyTorch
  and its optimiser for each network: 12 × (1,200 × 64, minibatches of 32), since a step of one
  network is mostly calls of the library. `test_networks.py` holds gradients to autograd and
  training to a plain loop.
- `evidential_loss`, `minibatches.cross_entropy`: losses with their gradients, against autograd:
  1.2 × of a whole step. `test_method_evidential.py` holds them to autograd.
- `trees`: trees grown on ranks, against scikit-learn's `RandomForestClassifier`: 13 ×
  (20,000 × 64). `test_trees.py` holds them to its trees.

What gains less than that is left to the library, as the steps of Adam are.
"""
