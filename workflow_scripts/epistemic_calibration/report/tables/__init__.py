"""The tables of a data set: a module of this folder that defines ``make`` is a table.

``make(results)``, of `report.results.DatasetResults`, returns a `Table`, and ``SUFFIX`` is what its
files have after the name of the data set.
"""
