"""Pages: one self-contained HTML file of a run, of a file of predictions, or of two runs.

`run_page` makes the page of a run from its results, `predictions.predictions_page` that of a file
of predictions, and `two_runs.two_runs_page` that of two folders of results. Charts are Vega-Lite,
tables DataTables; both come along, so that a page needs no network.
"""
