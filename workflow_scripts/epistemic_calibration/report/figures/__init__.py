"""The figures of a data set: a module of this folder that defines ``draw`` is a figure.

``draw(results, width=...)`` takes `DatasetResults` and returns a ``matplotlib.figure.Figure`` that
`report._saving.save_figure` writes, without a title: what a figure shows is in its ``CAPTION``,
which is saved beside it. Figures do not go through pyplot: no global state, no display.
"""
