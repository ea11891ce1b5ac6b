"""The charts of pages, as Vega-Lite specifications made by Altair.

Colours by category come from the theme of the page, in the order of the methods, so that a
chart is the same in light and dark. Menus that several charts follow are elements of the page.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import altair as alt

from epistemic_calibration.report.page._html import Chart
from epistemic_calibration.report.page._theme import PARTS, RIGHT_WRONG

#: What is smaller stands at the edge of a logarithmic axis.
SMALLEST = 1e-5
_HEIGHT = 420
# Rows are put in at the end: Altair would check each of them, over and over.
_ROWS = "rows"


def method_map(
    rows: Sequence[Mapping[str, Any]],
    *,
    data: Mapping[str, str],
    methods: Mapping[str, str],
    shapes: Sequence[str],
    hidden: Collection[str],
    metrics: Mapping[str, str],
    x: str,
    y: str,
    logs: tuple[bool, bool],
    title: str,
    description: str,
    prefix: str,
) -> Chart:
    """Return a map of methods by two metrics, both of which can be chosen.

    Parameters
    ----------
    rows : sequence of mapping
        ``data``, ``method`` (number in ``methods``), and ``v``: by metric, its value, low, high
        and text.
    data, methods, metrics : mapping of str to str
        What can be chosen, with its label.
    shapes : sequence of str
        Vega's shapes of the methods.
    hidden : collection of str
        Methods that are hidden at first.
    x, y : str
        Metrics at first.
    logs : tuple of bool
        Whether axes are logarithmic at first.
    title, description : str
    prefix : str
        Of the names of the chart's elements in the page.
    """
    labels = list(methods.values())
    domain = alt.Scale(domain=labels, range="category")
    params = [
        _menu("data", "Data ", data),
        _menu("x", "Across ", metrics, x),
        _menu("y", "Up ", metrics, y),
        alt.param(name="log_x", value=logs[0], bind=alt.binding_checkbox(name="Log across ")),
        alt.param(name="log_y", value=logs[1], bind=alt.binding_checkbox(name="Log up ")),
        alt.param(name="names", value=True, bind=alt.binding_checkbox(name="Names ")),
    ]
    params += [
        alt.param(
            name=f"show_{k}",
            value=name not in hidden,
            bind=alt.binding_checkbox(name=f"{label} ", element=f"#{prefix}-methods"),
        )
        for k, (name, label) in enumerate(methods.items())
    ]
    shown = f"[{','.join(f'show_{k}' for k in range(len(labels)))}][datum.method]"
    base = (
        alt.Chart(alt.NamedData(_ROWS))
        .transform_filter("datum.data == data")
        .transform_filter(shown)
        .transform_filter("isValid(datum.v[x]) && isValid(datum.v[y])")
        .transform_calculate(
            label=f"[{','.join(map(_quoted, labels))}][datum.method]",
            **{
                f"{axis}_{end}": _placed(f"datum.v[{axis}][{k}]", f"log_{axis}")
                for axis in ("x", "y")
                for k, end in enumerate(("at", "low", "high"))
            },
            x_text="datum.v[x][3]",
            y_text="datum.v[y][3]",
        )
    )
    tooltip = [
        alt.Tooltip("label:N", title="Method"),
        alt.Tooltip("y_text:N", title="Up"),
        alt.Tooltip("x_text:N", title="Across"),
    ]
    axes = {
        axis: alt.Axis(
            title=None,
            labelExpr=f"log_{axis} ? format(pow(10, datum.value), '.2~r')"
            " : format(datum.value, '.3~g')",
            tickCount=6,
            labelOverlap=True,
        )
        for axis in ("x", "y")
    }
    scale = alt.Scale(zero=False, nice=False, padding=24)
    color = alt.Color("label:N", scale=domain, legend=None)
    at = {
        "x": alt.X("x_at:Q", axis=axes["x"], scale=scale),
        "y": alt.Y("y_at:Q", axis=axes["y"], scale=scale),
    }
    whiskers = [
        base.mark_rule(strokeWidth=1.5, opacity=0.8).encode(
            x=alt.X("x_low:Q"), x2="x_high:Q", y=at["y"], color=color
        ),
        base.mark_rule(strokeWidth=1.5, opacity=0.8).encode(
            y=alt.Y("y_low:Q"), y2="y_high:Q", x=at["x"], color=color
        ),
    ]
    points = base.mark_point(filled=True, size=110, opacity=1, style="outlined").encode(
        **at,
        color=color,
        shape=alt.Shape("label:N", scale=alt.Scale(domain=labels, range=shapes), legend=None),
        tooltip=tooltip,
        description="label:N",
    )
    names = (
        base.transform_filter("names")
        .mark_text(align="left", dx=9, dy=-6, fontSize=11)
        .encode(**at, text="label:N")
    )
    # Of the rows, so that the axis reaches 1 where shares are shown, and no further elsewhere.
    right = (
        base.transform_aggregate(least="min(y_at)")
        .transform_calculate(one="y == 'reported_share' ? (log_y ? 0 : 1) : datum.least")
        .mark_rule(
            strokeDash=[5, 4],
            strokeWidth=1.5,
            opacity=alt.expr("y == 'reported_share' ? 1 : 0"),
        )
        .encode(y=alt.Y("one:Q"))
    )
    named = f"{{{','.join(f'{_quoted(k)}: {_quoted(v)}' for k, v in metrics.items())}}}"
    heading = alt.Title(alt.expr(f"['↑ ' + {named}[y], '→ ' + {named}[x]]"))
    chart = alt.layer(right, *whiskers, points, names).add_params(*params)
    chart = chart.properties(
        width="container", height=_HEIGHT, title=heading, description=description
    )
    return _finished(chart, rows, title, description, prefix)


def eece_parts(
    rows: Sequence[Mapping[str, Any]],
    *,
    data: Mapping[str, str],
    methods: Mapping[str, str],
    title: str,
    description: str,
) -> Chart:
    """Return bars of the parts of EECE.

    Parameters
    ----------
    rows : sequence of mapping
        ``data``, ``method`` (its label), ``part`` (of `PARTS`), ``order``, ``value``, and the
        ``total`` of the parts and ``eece`` of the method.
    data, methods : mapping
    title, description : str
    """
    names = {
        "error": "g² beyond label noise",
        "noise": "g² of label noise",
        "dispersion": "W: scatter in bins",
    }
    base = (
        alt.Chart(alt.NamedData(_ROWS))
        .transform_filter("datum.data == data")
        .transform_calculate(
            shown="share ? (datum.total > 0 ? datum.value / datum.total : 0) : datum.value",
            eece_shown="share ? null : datum.eece",
            named=f"{{{','.join(f'{k}: {_quoted(v)}' for k, v in names.items())}}}[datum.part]",
        )
    )
    y = alt.Y("method:N", title=None, sort=list(methods.values()))
    bars = base.mark_bar(stroke="transparent").encode(
        x=alt.X("shown:Q", title=None, axis=alt.Axis(format="~g", tickCount=5)),
        y=y,
        color=alt.Color(
            "named:N",
            scale=alt.Scale(domain=list(names.values()), range=list(PARTS.values())),
            legend=alt.Legend(title=None, orient="top", columns=1, labelLimit=320),
        ),
        order="order:Q",
        tooltip=[
            alt.Tooltip("method:N", title="Method"),
            alt.Tooltip("named:N", title="Part"),
            alt.Tooltip("value:Q", title="Value", format=".4~g"),
            alt.Tooltip("eece:Q", title="EECE", format=".4~g"),
        ],
    )
    ticks = base.mark_tick(thickness=2.5, height=16).encode(x="eece_shown:Q", y=y)
    chart = (
        alt.layer(bars, ticks)
        .add_params(
            _menu("data", "Data ", data),
            alt.param(
                name="share", value=False, bind=alt.binding_checkbox(name="Shares of g² + W ")
            ),
        )
        .properties(width="container", height=24 * len(methods) + 8, description=description)
    )
    return _finished(chart, rows, title, description)


def reliability(rows: Sequence[Mapping[str, Any]], *, controls: str, description: str) -> Chart:
    """Return a reliability diagram with intervals.

    Parameters
    ----------
    rows : sequence of mapping
        ``data``, ``method``, ``predicted``, ``frequency``, ``low``, ``high``, ``n``.
    controls : str
        Prefix of the page's menus that the chart follows; without any, it shows all rows.
    description : str
    """
    base = _followed(alt.Chart(alt.NamedData(_ROWS)), controls)
    unit = alt.Scale(domain=[0, 1])
    x = alt.X("predicted:Q", title="Mean prediction", scale=unit, axis=alt.Axis(tickCount=5))
    diagonal = (
        alt.Chart(alt.InlineData(values=[{"at": 0}, {"at": 1}]))
        .mark_line(strokeDash=[5, 4], strokeWidth=1)
        .encode(x="at:Q", y="at:Q", color=alt.value("#8a8f98"))
    )
    whiskers = base.mark_rule(style="whisker").encode(x=x, y="low:Q", y2="high:Q")
    points = base.mark_point(filled=True, opacity=1, style="mark").encode(
        x=x,
        y=alt.Y(
            "frequency:Q", title="Frequency of label 1", scale=unit, axis=alt.Axis(tickCount=5)
        ),
        size=alt.Size("n:Q", scale=alt.Scale(type="log", range=[25, 260]), legend=None),
        tooltip=[
            alt.Tooltip("predicted:Q", title="Mean prediction", format=".3f"),
            alt.Tooltip("frequency:Q", title="Frequency of label 1", format=".3f"),
            alt.Tooltip("low:Q", title="Interval from", format=".3f"),
            alt.Tooltip("high:Q", title="Interval to", format=".3f"),
            alt.Tooltip("n:Q", title="Predictions", format=","),
        ],
    )
    chart = _following(alt.layer(diagonal, whiskers, points), controls)
    chart = chart.properties(width="container", height=280, description=description)
    return _finished(chart, rows, "Reliability: is the mean right?", description)


def error_against_uncertainty(
    rows: Sequence[Mapping[str, Any]], *, controls: str, at_most: bool, description: str
) -> Chart:
    """Return the squared error in bins of the uncertainty, on logarithmic axes.

    Parameters
    ----------
    rows : sequence of mapping
        ``data``, ``method``, ``uncertainty``, ``error`` (None where bounds alone are known),
        ``low``, ``high``.
    controls : str
    at_most : bool
        Whether bars are bounds, or intervals of an upper bound.
    description : str
    """
    clipped = [
        {**row, **{k: max(row[k], SMALLEST) for k in ("uncertainty", "low", "high")}}
        | {"error": None if row["error"] is None else max(row["error"], SMALLEST)}
        | {"text": f"{row['low']:.2g} to {row['high']:.2g}", "said": row["uncertainty"]}
        for row in rows
    ]
    ends = [v for r in clipped for v in (r["uncertainty"], r["low"], r["high"])] or [SMALLEST, 1]
    domain = [min(ends) / 1.5, max(ends) * 1.5]
    scale = alt.Scale(type="log", domain=domain, nice=False)
    steps = (1, 2, 5) if domain[1] < 100 * domain[0] else (1,)
    ticks = [step * 10.0**k for k in range(-5, 2) for step in steps]
    axis = alt.Axis(
        format=".1~r",
        values=[tick for tick in ticks if domain[0] <= tick <= domain[1]],
        labelOverlap=True,
    )
    base = _followed(alt.Chart(alt.NamedData(_ROWS)), controls, whole=True)
    diagonal = (
        alt.Chart(alt.InlineData(values=[{"at": end} for end in domain]))
        .mark_line(strokeDash=[5, 4], strokeWidth=1)
        .encode(
            x=alt.X("at:Q", scale=scale), y=alt.Y("at:Q", scale=scale), color=alt.value("#8a8f98")
        )
    )
    tooltip = [
        alt.Tooltip("said:Q", title="Squared error reported", format=".3~g"),
        alt.Tooltip("error:Q", title="Squared error made", format=".3~g"),
        alt.Tooltip("text:N", title="Bounds" if at_most else "Interval"),
    ]
    x = alt.X("uncertainty:Q", title="Squared error reported", scale=scale, axis=axis)
    y = alt.Y("low:Q", title="Squared error made", scale=scale, axis=axis)
    bars = base.mark_rule(style="whisker", strokeWidth=4 if at_most else 2).encode(
        x=x, y=y, y2="high:Q", tooltip=tooltip
    )
    points = (
        base.transform_filter("isValid(datum.error)")
        .mark_point(filled=True, size=60, opacity=1, style="mark")
        .encode(x=x, y=alt.Y("error:Q", scale=scale), tooltip=tooltip)
    )
    chart = _following(alt.layer(diagonal, bars, points), controls)
    chart = chart.properties(width="container", height=280, description=description)
    return _finished(chart, clipped, "Error against uncertainty, in tenths by it", description)


def uncertainty_histogram(
    rows: Sequence[Mapping[str, Any]], *, controls: str, description: str
) -> Chart:
    """Return a histogram of √EU by whether the predicted class is right.

    Parameters
    ----------
    rows : sequence of mapping
        ``data``, ``method``, ``low`` and ``high`` (points), ``outcome`` (right or wrong), ``n``
        and the ``share`` of the outcome.
    controls : str
    description : str
    """
    base = _followed(alt.Chart(alt.NamedData(_ROWS)), controls)
    scale = alt.Scale(type="log", nice=False)
    bars = base.mark_rect(opacity=0.65).encode(
        x=alt.X(
            "low:Q",
            title="√EU in points (smaller: at the edge)",
            scale=scale,
            axis=alt.Axis(format="~r", values=[0.1, 0.3, 1, 3, 10, 30, 100]),
        ),
        x2="high:Q",
        y=alt.Y(
            "share:Q",
            title="Share of these predictions",
            axis=alt.Axis(format="%", tickCount=5),
            scale=alt.Scale(domainMin=0),
        ),
        y2=alt.Y2Datum(0),
        color=alt.Color(
            "outcome:N",
            title="Class predicted",
            scale=alt.Scale(domain=list(RIGHT_WRONG), range=list(RIGHT_WRONG.values())),
            legend=alt.Legend(orient="top"),
        ),
        tooltip=[
            alt.Tooltip("outcome:N", title="Class predicted"),
            alt.Tooltip("low:Q", title="From, points", format=".2~g"),
            alt.Tooltip("high:Q", title="To, points", format=".2~g"),
            alt.Tooltip("n:Q", title="Predictions", format=","),
            alt.Tooltip("share:Q", title="Share", format=".1%"),
        ],
    )
    chart = _following(alt.layer(bars), controls)
    chart = chart.properties(width="container", height=280, description=description)
    return _finished(chart, rows, "How large is the uncertainty that it reports?", description)


def two_runs(
    rows: Sequence[Mapping[str, Any]],
    *,
    data: Mapping[str, str],
    methods: Mapping[str, str],
    shapes: Sequence[str],
    metrics: Mapping[str, str],
    metric: str,
    names: tuple[str, str],
    description: str,
) -> Chart:
    """Return the scores of one run against those of another.

    Parameters
    ----------
    rows : sequence of mapping
        ``data``, ``method`` (its label), ``metric``, ``a``, ``b`` and ``text``.
    data, methods, metrics : mapping
    shapes : sequence of str
    metric : str
        At first.
    names : tuple of str
        What the runs are called.
    description : str
    """
    labels = list(methods.values())
    base = (
        alt.Chart(alt.NamedData(_ROWS))
        .transform_filter("datum.data == data && datum.metric == metric")
        .transform_calculate(
            at_a=_placed("datum.a", "log_scale"), at_b=_placed("datum.b", "log_scale")
        )
    )
    axis = alt.Axis(
        labelExpr="log_scale ? format(pow(10, datum.value), '.2~r') : format(datum.value, '.3~g')",
        tickCount=5,
        labelOverlap=True,
    )
    scale = alt.Scale(zero=False, nice=False, padding=20)
    line = (
        base.transform_fold(["at_a", "at_b"], as_=["run", "at"])
        .mark_line(strokeDash=[5, 4], strokeWidth=1)
        .encode(x="at:Q", y="at:Q", color=alt.value("#8a8f98"))
    )
    points = base.mark_point(filled=True, size=110, opacity=1, style="outlined").encode(
        x=alt.X("at_a:Q", title=f"A: {names[0]}", axis=axis, scale=scale),
        y=alt.Y("at_b:Q", title=f"B: {names[1]}", axis=axis, scale=scale),
        color=alt.Color(
            "method:N",
            scale=alt.Scale(domain=labels, range="category"),
            legend=None,
        ),
        shape=alt.Shape("method:N", scale=alt.Scale(domain=labels, range=shapes), legend=None),
        tooltip=[alt.Tooltip("method:N", title="Method"), alt.Tooltip("text:N", title="A → B")],
    )
    labelled = base.mark_text(align="left", dx=9, dy=-6, fontSize=11).encode(
        x=alt.X("at_a:Q"), y=alt.Y("at_b:Q"), text="method:N"
    )
    chart = (
        alt.layer(line, points, labelled)
        .add_params(
            _menu("data", "Data ", data),
            _menu("metric", "Metric ", metrics, metric),
            alt.param(name="log_scale", value=False, bind=alt.binding_checkbox(name="Log ")),
        )
        .properties(width="container", height=_HEIGHT, description=description)
    )
    return _finished(chart, rows, "One run against the other (dashed: the same)", description)


def _menu(
    name: str, label: str, options: Mapping[str, str], value: str | None = None
) -> alt.Parameter:
    first = next(iter(options), "") if value is None else value
    if len(options) == 1:
        return alt.param(name=name, value=first)
    bind = alt.binding_select(options=list(options), labels=list(options.values()), name=label)
    return alt.param(name=name, value=first, bind=bind)


def _followed(chart: alt.Chart, controls: str, *, whole: bool = False) -> alt.Chart:
    """Filter by the menus of the page; ``whole``: by the data set, whatever the task."""
    if not controls:
        return chart
    # A value is DATASET/TASK, in numbers.
    data = "split(data, '/')[0] + '/'" if whole else "data"
    return chart.transform_filter(f"datum.data == {data} && datum.method == method")


def _following(chart: alt.LayerChart, controls: str) -> alt.LayerChart:
    if not controls:
        return chart
    return chart.add_params(
        *(
            alt.param(
                name=name,
                value=value,
                bind=alt.BindDirect(element=f"#{controls}-{name}", event="change"),
            )
            for name, value in (("data", "0/"), ("method", "0"))
        )
    )


def _placed(value: str, log: str) -> str:
    return f"isValid({value}) ? ({log} ? log(max({value}, {SMALLEST})) / LN10 : {value}) : null"


def _quoted(text: str) -> str:
    """Return text as a string of Vega's expressions."""

    return json.dumps(text)


def _finished(
    chart: alt.TopLevelMixin,
    rows: Sequence[Mapping[str, Any]],
    title: str,
    description: str,
    prefix: str = "",
) -> Chart:
    spec = chart.to_dict()
    spec["datasets"] = {**spec.get("datasets", {}), _ROWS: list(rows)}
    return Chart(spec, title, description, prefix)
