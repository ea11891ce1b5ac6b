"""Templates of pages: Jinja with escaping of everything that is not marked as markup.

What is JSON goes into scripts of a type that no browser runs, with ``<`` escaped.
"""

_STYLE = """\
{% macro variables(c) %}
{% for name, value in c.items() %}--{{ name }}: {{ value }}; {% endfor %}
{% endmacro %}
:root { color-scheme: light dark; {{ variables(colors.light) }} }
@media (prefers-color-scheme: dark) { :root { {{ variables(colors.dark) }} } }
* { box-sizing: border-box; }
html { scroll-padding-top: 4rem; }
body { margin: 0; font: 16px/1.55 system-ui, sans-serif; color: var(--ink);
  background: var(--paper); }
header.top, main, footer { max-width: 76rem; margin: 0 auto; padding: 0 1rem; }
h1 { font-size: 1.7rem; margin: 1.5rem 0 0; overflow-wrap: anywhere; }
h2 { font-size: 1.3rem; margin: 0 0 .4rem; overflow-wrap: anywhere; }
h3 { font-size: 1.05rem; margin: 1.2rem 0 .3rem; overflow-wrap: anywhere; }
p { max-width: 48rem; margin: .4rem 0; overflow-wrap: anywhere; }
a { color: var(--link); }
.muted, figcaption, .notes, .lead { color: var(--muted); }
.skip { position: absolute; left: -99rem; }
.skip:focus { left: 1rem; top: .5rem; background: var(--paper); padding: .5rem; z-index: 9; }
:focus-visible { outline: 3px solid var(--link); outline-offset: 2px; }
nav { position: sticky; top: 0; z-index: 5; background: var(--paper);
  border-bottom: 1px solid var(--line); }
nav ul { display: flex; gap: 0 1.1rem; list-style: none; margin: 0 auto; padding: .55rem 1rem;
  max-width: 76rem; flex-wrap: wrap; font-size: .92rem; }
section { padding: 1.6rem 0 .6rem; border-bottom: 1px solid var(--line); }
.warning { border-left: 4px solid var(--warning); padding: .1rem .8rem; color: var(--warning);
  margin: .5rem 0; }
.answer { font-size: 1.08rem; }
.charts { display: grid; gap: 1rem; grid-template-columns: repeat(auto-fit, minmax(19rem, 1fr)); }
.charts.wide { grid-template-columns: minmax(0, 1fr); }
figure { margin: .6rem 0; min-width: 0; }
figure.chart { background: var(--panel); border-radius: .5rem; padding: .7rem .8rem; }
figure.chart h3 { margin: 0 2.4rem .3rem 0; }
.vega { width: 100%; min-height: 12rem; }
.vega-embed { width: 100%; padding-right: 0 !important; }
.vega-embed > svg, .vega-embed .chart-wrapper > svg { max-width: 100%; }
.vega-embed details { margin: 0; }
.vega-embed details > summary { top: -2.4rem !important; right: 0 !important; }
.vega-embed .vega-actions { top: -.3rem !important; right: 0 !important; }
.vega-bindings { display: flex; flex-wrap: wrap; gap: .35rem 1rem; margin-top: .4rem; }
.vega-bind label, .controls label, .methods label { display: inline-flex; gap: .35rem;
  align-items: center; max-width: 100%; }
.vega-bind .vega-bind-name { display: inline !important; margin: 0 !important; }
.methods { display: flex; flex-wrap: wrap; gap: .2rem 1rem; }
select, input { font: inherit; max-width: 100%; }
select { max-width: min(19rem, 70vw); background: var(--paper); color: var(--ink);
  border: 1px solid var(--muted); border-radius: .3rem; padding: .15rem .3rem; }
.controls { display: flex; flex-wrap: wrap; gap: .4rem 1.2rem; margin: .6rem 0; }
#vg-tooltip-element.vg-tooltip { background: var(--paper) !important; color: var(--ink) !important;
  border: 1px solid var(--muted) !important; font-size: 13px; max-width: 24rem; }
#vg-tooltip-element table tr td { color: var(--ink) !important; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; margin: .5rem 0; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; padding: .3rem 0; }
th, td { padding: .3rem .6rem; text-align: left; border-bottom: 1px solid var(--line);
  vertical-align: top; }
table.dataTable thead th { white-space: normal; min-width: 5rem; }
table.dataTable td, table.dataTable th { color: var(--ink); }
td .drawn { display: block; width: 96px; height: 12px; margin: 1px 0 0 auto; }
td.number { white-space: nowrap; text-align: right; }
.drawn line { stroke: var(--mark); stroke-width: 2; }
.drawn circle { fill: var(--mark); }
.drawn .axis { stroke: var(--line); stroke-width: 1; }
div.dt-container { color: var(--ink); font-size: .9rem; max-width: 100%; }
div.dt-container input, div.dt-container .dt-paging-button { color: var(--ink) !important; }
div.dt-container input { background: var(--paper); border: 1px solid var(--muted) !important; }
details { margin: .5rem 0; }
summary { cursor: pointer; padding: .25rem 0; overflow-wrap: anywhere; }
details.method { background: var(--panel); border-radius: .5rem; padding: .3rem .8rem; }
.inputs { display: grid; grid-template-columns: repeat(auto-fill, minmax(7.2rem, 1fr));
  gap: .5rem; margin: .4rem 0 1rem; padding: 0; list-style: none; }
.inputs li { background: var(--paper); border: 1px solid var(--line); border-radius: .4rem;
  padding: .4rem; font-size: .85rem; overflow-wrap: anywhere; }
.inputs img { display: block; width: 64px; height: 64px; object-fit: contain;
  image-rendering: pixelated; background: #777; margin-bottom: .2rem; }
.pictures { display: grid; gap: 1rem;
  grid-template-columns: repeat(auto-fit, minmax(min(26rem, 100%), 1fr)); }
.pictures img { max-width: 100%; height: auto; background: #fff; border-radius: .4rem;
  padding: .3rem; }
dl { display: grid; grid-template-columns: minmax(7rem, max-content) 1fr; gap: .2rem 1rem;
  margin: .5rem 0; }
dt { color: var(--muted); }
dd { margin: 0; overflow-wrap: anywhere; }
pre { overflow-x: auto; background: var(--panel); padding: .7rem; border-radius: .4rem;
  font-size: .85rem; }
footer { padding: 1.2rem 1rem 2rem; }
@media (max-width: 600px) { nav { position: static; } dl { grid-template-columns: 1fr; }
  dd { margin-bottom: .4rem; }
  .charts { grid-template-columns: minmax(0, 1fr); }
  .charts figure.chart { padding: .6rem .4rem; } }
@media print { nav, .controls, .vega-bindings { display: none; } }
"""

_PARTS = """\
{% macro downloads(files) %}
{% if files %}
<p class="muted">Download:
{% for file in files %}
<a download="{{ file.name }}" href="{{ file.uri }}">{{ file.name }}</a>
{%- if not loop.last %} · {% endif %}
{% endfor %}
</p>
{% endif %}
{% endmacro %}

{% macro table(t) %}
<div class="scroll">
<table class="sortable display compact">
{% if t.caption %}<caption>{{ t.caption }}</caption>{% endif %}
<thead><tr>
{% for column in t.columns %}<th scope="col">{{ column }}</th>{% endfor %}
</tr></thead>
<tbody>
{% for row in t.rows %}
<tr>
{% for cell in row %}
<td{% if cell.drawn %} class="number"{% endif %}
{%- if cell.order is not none %} data-order="{{ cell.order }}"{% endif %}>
{% if cell.strong %}<strong>{{ cell.text }}</strong>{% else %}{{ cell.text }}{% endif %}

{% if cell.drawn %}
<svg class="drawn" viewBox="-4 0 108 12" preserveAspectRatio="none" aria-hidden="true">
<line class="axis" x1="0" y1="11" x2="100" y2="11"/>
{% if cell.drawn.low is not none %}
<line x1="{{ cell.drawn.low }}" y1="5" x2="{{ cell.drawn.high }}" y2="5"/>
{% endif %}
{% if cell.drawn.at is not none %}<circle cx="{{ cell.drawn.at }}" cy="5" r="3.5"/>{% endif %}
</svg>
{% endif %}
</td>
{% endfor %}
</tr>
{% endfor %}
</tbody>
</table>
</div>
{% for note in t.notes %}<p class="notes">{{ note }}</p>{% endfor %}
{{ downloads(t.downloads) }}
{% endmacro %}

{% macro chart(c) %}
<figure class="chart"{% if c.prefix %} id="{{ c.prefix }}"{% endif %}>
<h3>{{ c.title }}</h3>
<div class="vega"></div>
<script type="application/json">{{ c.spec|tojson }}</script>
{% if c.prefix %}
<details><summary>Show or hide methods</summary>
<div class="methods" id="{{ c.prefix }}-methods"></div></details>
{% endif %}
<figcaption>{{ c.description }}</figcaption>
</figure>
{% endmacro %}

{% macro bin(b) %}
<h3>{{ b.title }}</h3>
<p>{{ b.text }}</p>
<ul class="inputs">
{% for input in b.inputs %}
<li>
{% if input.image %}<img src="{{ input.image }}" alt="{{ input.alt }}">{% endif %}
{% for line in input.lines %}<div>{{ line }}</div>{% endfor %}
</li>
{% endfor %}
</ul>
{% endmacro %}

{% macro body(s) %}
{% if s.lead %}<p class="lead">{{ s.lead }}</p>{% endif %}
{% for name, texts in s.answers %}
{% if name %}<h3>{{ name }}</h3>{% endif %}
{% for text in texts %}<p class="answer">{{ text }}</p>{% endfor %}
{% endfor %}
{% for text in s.warnings %}<p class="warning">{{ text }}</p>{% endfor %}
{% if s.facts %}
<dl>{% for name, value in s.facts %}<dt>{{ name }}</dt><dd>{{ value }}</dd>{% endfor %}</dl>
{% endif %}
{% if s.controls %}
<div class="controls">
{% for control in s.controls %}
<label>{{ control.label }}
<select id="{{ control.id }}">
{% for value, label in control.options.items() %}<option value="{{ value }}">{{ label }}</option>
{% endfor %}
</select></label>
{% endfor %}
</div>
{% endif %}
{% if s.charts %}
<div class="charts{{ '' if s.narrow else ' wide' }}">
{% for c in s.charts %}{{ chart(c) }}{% endfor %}
</div>
{% endif %}
{% for t in s.tables %}{{ table(t) }}{% endfor %}
{% for group in s.groups %}
<details class="method"{{ ' open' if loop.first }}>
<summary>{{ group.title }}</summary>
{% for b in group.bins %}{{ bin(b) }}{% endfor %}
</details>
{% endfor %}
{% if s.pictures %}
<div class="pictures">
{% for picture in s.pictures %}
<figure><img src="{{ picture.uri }}" alt="{{ picture.alt }}">
<figcaption>{{ picture.caption }}</figcaption></figure>
{% endfor %}
</div>
{% endif %}
{% for name, text in s.texts %}
<details><summary>{{ name }}</summary><pre tabindex="0">{{ text }}</pre></details>
{% endfor %}
{{ downloads(s.downloads) }}
{% endmacro %}
"""

_PAGE = """\
{% import "parts.html" as parts %}
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<title>{{ title }}</title>
<script>{{ vega }}</script>
{{ datatables }}
<style>{% include "style.css" %}</style>
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<header class="top"><h1>{{ title }}</h1><p class="muted">{{ subtitle }}</p></header>
<nav aria-label="Sections"><ul>
{% for s in sections %}<li><a href="#{{ s.id }}">{{ s.title }}</a></li>{% endfor %}
</ul></nav>
<main id="main">
{% for s in sections %}
<section id="{{ s.id }}">
<h2>{{ s.title }}</h2>
{% if s.folded %}
<details><summary>Show</summary>{{ parts.body(s) }}</details>
{% else %}
{{ parts.body(s) }}
{% endif %}
</section>
{% endfor %}
</main>
<footer class="muted">epistemic-calibration {{ version }}. This page holds everything that it
shows and needs no network.</footer>
<script type="application/json" id="themes">{{ themes|tojson }}</script>
<script type="module">
const dark = matchMedia("(prefers-color-scheme: dark)").matches;
const config = JSON.parse(document.getElementById("themes").textContent)[dark ? "dark" : "light"];
document.documentElement.classList.toggle("dark", dark);
const actions = {export: true, source: false, compiled: false, editor: false};
for (const figure of document.querySelectorAll("figure.chart"))
  await vegaEmbed(figure.querySelector(".vega"), JSON.parse(figure.querySelector("script").text),
    {config, renderer: "svg", actions});
const {ITable} = await window["{{ datatables_name }}"];
for (const table of document.querySelectorAll("table.sortable"))
  new ITable(table, {paging: table.rows.length > 41, pageLength: 40, info: false, order: [],
    layout: {topStart: "search", topEnd: null}});
document.documentElement.dataset.ready = "true";
</script>
</body>
</html>
"""

TEMPLATES = {"page.html": _PAGE, "parts.html": _PARTS, "style.css": _STYLE}
