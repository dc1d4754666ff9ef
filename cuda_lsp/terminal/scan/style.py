"""How the page looks, by the reader's own preference for light or dark, on screen and on paper."""

CSS = """
:root { color-scheme: light dark;
  --paper: #fcfcfb; --card: #ffffff; --ink: #1a1a19; --soft: #5e5d59; --faint: #e4e3de; --line: #d3d1ca;
  --floor: #98958c; --gain: #eb6834; --link: #1c5cab;
  --c0: #2a78d6; --c1: #1baf7a; --c2: #eda100; --c3: #008300; --c4: #4a3aa7; --c5: #e34948; --c6: #8a8880; }
@media (prefers-color-scheme: dark) { :root {
  --paper: #161615; --card: #1f1f1d; --ink: #f1f0ec; --soft: #a9a79f; --faint: #2c2c2a; --line: #43423f;
  --floor: #77756d; --gain: #d95926; --link: #86b6ef;
  --c0: #3987e5; --c1: #199e70; --c2: #c98500; --c3: #3a9a3a; --c4: #9085e9; --c5: #e66767; --c6: #8f8d85; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 28px 24px 64px; max-width: 1180px; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", "Noto Sans", sans-serif; }
h1 { font-size: 26px; line-height: 1.2; margin: 0 0 4px; } h2 { font-size: 17px; margin: 0 0 4px; }
p { margin: 0 0 10px; } a { color: var(--link); } .soft { color: var(--soft); }
code, .mono { font-family: ui-monospace, "SF Mono", "DejaVu Sans Mono", Consolas, monospace; font-size: 13px;
  overflow-wrap: anywhere; }
.statement { border-left: 4px solid var(--gain); padding: 6px 12px; background: var(--card); margin: 14px 0 18px; }
.tiles { display: flex; flex-wrap: wrap; gap: 12px; margin: 0 0 18px; }
.tile { flex: 1 1 150px; background: var(--card); border: 1px solid var(--faint); border-radius: 8px;
  padding: 10px 14px; }
.tile b { display: block; font-size: 24px; line-height: 1.25; font-weight: 650; }
.card { background: var(--card); border: 1px solid var(--faint); border-radius: 8px;
  padding: 16px 18px; margin: 0 0 18px; }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(430px, 1fr)); gap: 18px; }
.pair > .card { margin: 0; } .pair { margin: 0 0 18px; }
@media (max-width: 520px) { .pair { grid-template-columns: 1fr; } body { padding: 16px 10px 40px; } }
svg { display: block; width: 100%; height: auto; }
svg text { fill: var(--ink); font-size: 12px; font-family: system-ui, "Segoe UI", "Noto Sans", sans-serif; }
svg .soft { fill: var(--soft); } svg .axis { stroke: var(--line); stroke-width: 1; }
svg .grid { stroke: var(--faint); stroke-width: 1; } svg .guide { stroke: var(--soft); stroke-dasharray: 4 4;
  fill: none; }
svg .dot { stroke: var(--card); stroke-width: 1.5; } svg .end { text-anchor: end; } svg .middle { text-anchor: middle; }
svg .name { paint-order: stroke; stroke: var(--card); stroke-width: 3px; stroke-linejoin: round; }
.f0 { fill: var(--c0); background: var(--c0); } .f1 { fill: var(--c1); background: var(--c1); }
.f2 { fill: var(--c2); background: var(--c2); } .f3 { fill: var(--c3); background: var(--c3); }
.f4 { fill: var(--c4); background: var(--c4); } .f5 { fill: var(--c5); background: var(--c5); }
.f6 { fill: var(--c6); background: var(--c6); }
.floor { fill: var(--floor); background: var(--floor); } .gain { fill: var(--gain); background: var(--gain); }
.key { display: flex; flex-wrap: wrap; gap: 4px 16px; margin: 8px 0 0; font-size: 13px; color: var(--soft); }
.key i { display: inline-block; width: 10px; height: 10px; border-radius: 2px; margin-right: 6px; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; font-size: 14px; }
th { text-align: left; font-weight: 600; color: var(--soft); font-size: 13px; white-space: nowrap; }
th, td { padding: 6px 10px; border-bottom: 1px solid var(--faint); vertical-align: top; }
td.n, th.n { text-align: right; white-space: nowrap; } tr:target > td { background: var(--faint); }
tr.near td { color: var(--soft); }
.track { width: 88px; height: 10px; background: var(--faint); border-radius: 3px; overflow: hidden; margin-top: 5px; }
.track i { display: block; height: 10px; min-width: 1px; }
.rule { display: inline-block; border: 1px solid var(--line); border-radius: 4px; padding: 0 5px; margin: 0 4px 2px 0;
  font-size: 12px; } .rule.warning { border-color: var(--gain); }
details summary { cursor: pointer; } details[open] summary { margin-bottom: 6px; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 3px 14px; margin: 4px 0 8px; font-size: 13px; }
.term { display: flex; gap: 10px; } dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
ul { margin: 4px 0; padding-left: 20px; } li { margin: 2px 0; overflow-wrap: anywhere; }
@media print { body { max-width: none; } .card, .tile { break-inside: avoid; } }
"""
