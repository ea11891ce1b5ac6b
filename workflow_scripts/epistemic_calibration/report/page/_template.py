"""The template of pages: Jinja with escaping of everything that is not marked as markup."""

COLORS = {
    "light": {
        "ink": "#000000",
        "muted": "#555555",
        "line": "#dddddd",
        "paper": "#ffffff",
        "panel": "#f4f6f9",
        "blue": "#1f4fa8",
        "orange": "#b3541e",
    },
    "dark": {
        "ink": "#e8eaee",
        "muted": "#a9b1bd",
        "line": "#3a414b",
        "paper": "#14171c",
        "panel": "#1e232a",
        "blue": "#8fb8ff",
        "orange": "#ffb077",
    },
}

_STYLE = """\
{% macro variables(c) %}
{% for name, value in c.items() %}--{{ name }}: {{ value }}; {% endfor %}
{% endmacro %}
:root { color-scheme: light dark; {{ variables(colors.light) }} }
@media screen and (prefers-color-scheme: dark) { :root { {{ variables(colors.dark) }} } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 66rem; padding: 0 1rem 2rem; color: var(--ink);
  background: var(--paper); font: 15px/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; margin: 1rem 0 0; }
h2 { font-size: 1.3rem; margin: 1.6rem 0 .3rem; }
h3 { font-size: 1.1rem; margin: 1.4rem 0 .3rem; }
p { max-width: 56rem; margin: .4rem 0; }
a { color: var(--blue); }
svg { display: block; max-width: 100%; height: auto; }
svg a:hover text { text-decoration: underline; }
.muted, figcaption, .notes { color: var(--muted); }
.headline { font-size: 1.15rem; font-weight: 600; }
.warning { border-left: 4px solid var(--orange); padding-left: .7rem; color: var(--orange); }
.skip { position: absolute; left: -99rem; }
.skip:focus { position: static; }
:focus-visible { outline: 3px solid var(--blue); outline-offset: 2px; }
.answers svg { width: 100%; max-width: 60rem; margin: .5rem 0; }
.narrow { display: none; }
@media (max-width: 640px) { .wide { display: none; } .narrow { display: block; } }
.dataset:not(:has(.more:checked)) .all, .dataset:has(.more:checked) .main { display: none; }
.tools { display: flex; flex-wrap: wrap; gap: .3rem .6rem; align-items: center; }
.tools label { margin-right: auto; }
button, .button { font: inherit; font-size: .9rem; color: var(--ink); background: var(--panel);
  border: 1px solid var(--muted); border-radius: .3rem; padding: .1rem .6rem; cursor: pointer;
  text-decoration: none; }
.needs-script { display: none; }
.scripted .needs-script { display: inline-block; }
.chips { display: flex; flex-wrap: wrap; gap: .3rem; list-style: none; padding: 0;
  margin: .4rem 0; }
.chips a { display: block; border: 1px solid var(--muted); border-radius: 1rem; color: var(--ink);
  padding: .05rem .7rem; text-decoration: none; font-size: .9rem; }
.chips a[aria-current] { background: var(--blue); border-color: var(--blue); color: var(--paper); }
.method { display: none; scroll-margin-top: 4rem; }
.method:target, .method.chosen,
.dataset:not(:has(.method:target, .method.chosen)) .method:first-of-type { display: block; }
.three { display: grid; gap: 1rem; grid-template-columns: repeat(3, minmax(0, 1fr)); }
@media (max-width: 640px) { .three { grid-template-columns: minmax(0, 22rem); } }
figure { margin: 0; }
figcaption { font-size: .9rem; }
.three svg { width: 100%; }
details { margin: .4rem 0; }
summary { cursor: pointer; padding: .2rem 0; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums;
  overflow-wrap: normal; }
th, td { padding: .25rem .6rem; text-align: right; border-bottom: 1px solid var(--line);
  vertical-align: top; white-space: nowrap; }
td.word { white-space: normal; min-width: 6rem; }
thead th, th:first-child { white-space: normal; }
thead th { vertical-align: bottom; }
th:first-child, td.word, th.word { text-align: left; }
th:first-child { position: sticky; left: 0; background: var(--paper); font-weight: 400;
  max-width: 9.5rem; }
thead th, thead th:first-child { font-weight: 600; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; margin: .4rem 0; }
dt { color: var(--muted); }
dd { margin: 0; }
pre { overflow: auto; max-height: 26rem; background: var(--panel); padding: .7rem;
  font-size: .8rem; }
@page { size: A4; margin: 14mm; }
@media print {
  body { font-size: 9.5pt; padding: 0; max-width: none; }
  .tools, .chips, .skip, details:not([open]), nav, .experts:not(:has([open])) { display: none; }
  figcaption, .notes { font-size: 8pt; }
  .wide { display: block; } .narrow { display: none; }
  .three { grid-template-columns: repeat(3, minmax(0, 1fr)); }
  .scroll { overflow: visible; }
  svg, figure, tr, .headline { break-inside: avoid; }
  h2, h3 { break-after: avoid; }
  table { font-size: 7.5pt; } th, td { padding: .15rem .3rem; }
}
"""

_PARTS = """\
{% macro table(t) %}
{% if t.shows_caption %}<p><strong>{{ t.caption }}</strong></p>{% endif %}
<div class="scroll" tabindex="0" role="region" aria-label="{{ t.caption }}">
<table>
<thead><tr>
{% for column in t.columns %}
<th scope="col"{% if loop.index0 in t.words %} class="word"{% endif %}>{{ column }}</th>
{% endfor %}
</tr></thead>
<tbody>
{% for row in t.rows %}
<tr><th scope="row">{{ row[0] }}</th>
{% for cell in row[1:] %}<td{% if loop.index in t.words %} class="word"{% endif %}>
{{ cell }}</td>{% endfor %}
</tr>
{% endfor %}
</tbody>
</table>
</div>
{% for note in t.notes %}<p class="notes">{{ note }}</p>{% endfor %}
{% if t.csv %}<p><a class="button" download="{{ t.file }}" href="{{ t.csv }}">CSV</a></p>{% endif %}
{% endmacro %}

{% macro dataset(d, alone) %}
<section class="dataset" id="{{ d.id }}">
{% if not alone %}<h2>{{ d.title }}</h2><p class="muted">{{ d.subtitle }}</p>{% endif %}
<div class="answers">
<p class="headline">{{ d.headline }}</p>
{% if d.warnings|length > 2 %}
<details><summary class="warning">{{ d.warnings|length }} warnings</summary>
{% for text in d.warnings %}<p class="warning">{{ text }}</p>{% endfor %}
</details>
{% else %}
{% for text in d.warnings %}<p class="warning">{{ text }}</p>{% endfor %}
{% endif %}
{% for svg in d.answers %}{{ svg }}{% endfor %}
<p>{{ d.sentences|join(" ") }}</p>
<p class="tools">
{% if d.more %}
<label><input type="checkbox" class="more"> Illustrative methods and controls</label>
{% else %}<label></label>{% endif %}
<button class="needs-script" data-copy="text">Copy as text</button>
<button class="needs-script" data-copy="latex">Copy as LaTeX</button>
<a class="button" download="{{ d.id }}_answers.csv" href="{{ d.csv }}">CSV</a>
<button class="needs-script" data-svg="{{ d.id }}_answers.svg">SVG</button>
</p>
<pre hidden class="text">{{ d.text }}</pre><pre hidden class="latex">{{ d.latex }}</pre>
<details><summary>In numbers, and how to read them</summary>
{{ table(d.table_shown) }}</details>
</div>
{% if d.methods %}
<h3>One method</h3>
<ul class="chips" aria-label="Methods">
{% for m in d.methods %}<li><a href="#{{ m.id }}">{{ m.label }}</a></li>{% endfor %}
</ul>
{% for m in d.methods %}
<article class="method" id="{{ m.id }}" aria-label="{{ m.label }}">
<p><strong>{{ m.label }}.</strong> {{ m.said }}</p>
<div class="three">
{% for p in m.pictures %}<figure>{{ p.svg }}<figcaption>{{ p.caption }}</figcaption></figure>
{% endfor %}
</div>
{% for t in m.wrong %}{{ table(t) }}{% endfor %}
</article>
{% endfor %}
{% endif %}
<div class="experts">
{% if d.tables %}<h3>For experts</h3>{% endif %}
{% for t in d.tables %}
<details><summary>{{ t.caption }}</summary>{{ table(t) }}</details>
{% endfor %}
</div>
</section>
{% endmacro %}
"""

_PAGE = """\
{% import "parts.html" as parts %}
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>{{ title }}</title>
<style>{% include "style.css" %}</style>
</head>
<body>
<a class="skip" href="#main">Skip to the answers</a>
<header><h1>{{ title }}</h1><p class="muted">{{ subtitle }}</p></header>
{% if datasets|length > 1 %}
<nav aria-label="Data sets"><ul class="chips">
{% for d in datasets %}<li><a href="#{{ d.id }}">{{ d.title }}</a></li>{% endfor %}
</ul></nav>
{% endif %}
<main id="main">
{% for d in datasets %}{{ parts.dataset(d, datasets|length == 1) }}{% endfor %}
{% for name, text in texts %}
<details><summary>{{ name }}</summary><pre tabindex="0">{{ text }}</pre></details>
{% endfor %}
<details><summary>Made by</summary>
<dl>{% for name, value in facts %}<dt>{{ name }}</dt><dd>{{ value }}</dd>{% endfor %}</dl>
</details>
</main>
<script>
const light = {{ colors.light|tojson }};
const root = document.documentElement, all = (q, e = document) => [...e.querySelectorAll(q)];
root.classList.add("scripted");
// A link keeps the view: the method, and whether all methods are shown.
function show() {
  const [id, ...flags] = decodeURIComponent(location.hash.slice(1)).split(";");
  const chosen = document.getElementById(id);
  all(".chosen").forEach(e => e.classList.remove("chosen"));
  if (chosen?.classList.contains("method")) chosen.classList.add("chosen");
  all(".more").forEach(box => { box.checked = flags.includes("all"); });
  for (const d of all(".dataset")) {
    const now = d.querySelector(".method.chosen") ?? d.querySelector(".method");
    for (const a of all(".chips a", d))
      a.toggleAttribute("aria-current", a.getAttribute("href") === "#" + now?.id);
  }
}
addEventListener("hashchange", show);
addEventListener("change", event => {
  if (!event.target.matches(".more")) return;
  const id = decodeURIComponent(location.hash.slice(1)).split(";")[0];
  const hash = "#" + id + (event.target.checked ? ";all" : "");
  history.replaceState(null, "", hash);
  show();
});
addEventListener("click", async event => {
  const link = event.target.closest("a");
  const to = link?.getAttribute("href") ?? link?.getAttribute("xlink:href") ?? "";
  if (to.startsWith("#") && document.querySelector(".more:checked")) {
    event.preventDefault();
    location.hash = to + ";all";
    document.getElementById(to.slice(1))?.scrollIntoView();
  }
  const button = event.target.closest("button"), here = button?.closest(".answers");
  if (button?.dataset.copy) {
    await navigator.clipboard.writeText(here.querySelector("." + button.dataset.copy).textContent);
    const said = button.textContent;
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = said; }, 1500);
  }
  if (button?.dataset.svg) {
    const svg = all(":scope > svg", here).find(e => e.getBoundingClientRect().width);
    const text = svg.outerHTML.replace(/var\\(--(\\w+)\\)/g, (_, name) => light[name]);
    const a = document.createElement("a");
    a.href = URL.createObjectURL(new Blob([text], {type: "image/svg+xml"}));
    a.download = button.dataset.svg;
    a.click();
  }
});
show();
root.dataset.ready = "true";
</script>
</body>
</html>
"""

TEMPLATES = {"page.html": _PAGE, "parts.html": _PARTS, "style.css": _STYLE}
