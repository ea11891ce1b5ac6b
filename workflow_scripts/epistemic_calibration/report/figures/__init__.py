"""The figures of a data set: a module of this folder that defines ``draw`` is a figure.

``draw(scores, dataset, methods)`` returns a ``matplotlib.figure.Figure`` that
`report._saving.save_figure` writes; the arguments are those of a table. Figures do not go
through pyplot: no global state, no display.
"""
