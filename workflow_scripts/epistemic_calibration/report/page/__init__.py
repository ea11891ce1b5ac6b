"""Pages: one self-contained HTML file of a run, or of files of predictions.

`run.run_page` makes the page of a run from its results, `files.files_page` that of files of
predictions, which it turns into such results. Figures are SVG made by matplotlib; a page needs no
network, and shows its answer without scripts.
"""
