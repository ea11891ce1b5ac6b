"""The tables of a data set: a module of this folder that defines ``make`` is a table.

``make(scores, dataset, methods, *, tasks, seeds, n_resamples, differences)`` returns a `Table`, and
``SUFFIX`` is what its files have after the name of the data set.

scores : DataFrame
    Tidy: columns dataset, seed, method, scope, task, metric, value and others.
dataset : str
methods : mapping
    What readers see of each method, by its name in the configuration:
    ``{"label": ..., "family": ...}``, family one of active, illustrative, control.
tasks, seeds : sequence, optional
    What there should be; by default every task and seed that any method has.
n_resamples : int, optional
    Label sets that each test by resampling drew.
differences : DataFrame, optional
    Which methods differ in the corrected TECE, as returned by `report.comparisons.compare_methods`;
    None where methods are missing.
"""
