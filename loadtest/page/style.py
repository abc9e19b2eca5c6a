"""How does the page look, on a desk, a phone and paper, in light and in dark?

Colours are of a kind that the colour-blind can tell apart, and none says anything alone: lines have dashes,
owners letters, verdicts icons and words, and each chart its numbers. Text stands out from its ground by 4.5 to 1 or
more.
"""

LIGHT = """
  color-scheme: light dark;
  --ground: #f6f7f8; --paper: #ffffff; --ink: #1c2126; --soft: #555d67; --rule: #d9dde2; --grid: #e6e9ed;
  --good: #14663c; --good-ground: #e3f3e9; --bad: #a3161f; --bad-ground: #fde8e8;
  --open: #7a4a00; --open-ground: #fdf1d9;
  --fault: #c2590a22; --edge: #b4530f; --chip: #fbe7d5; --chip-ink: #6a2f00; --focus: #0a62b0;
  --l0: #0a62b0; --l1: #c2480a; --l2: #0b7a55; --l3: #8f3f8c; --l4: #7d6200; --l5: #3d4650;
  --h0: #f4eddf; --h1: #d7e6f4; --h2: #b2d1ec; --h3: #84b4de;
  --h4: #5695cb; --h5: #2f74b0; --h6: #165592; --h7: #08306b;
  --track: #eef0f2; --name: #1c2126;
  --m0: #a9cbe8; --m1: #f3c38b; --m2: #a8d9bd; --m3: #d9b8e0;
  --m4: #efe08d; --m5: #f0b0a8; --m6: #c7cacd; --m7: #9fd8dc;
"""

DARK = """
  --ground: #14171a; --paper: #1b1f24; --ink: #e7eaed; --soft: #a7afb9; --rule: #363c44; --grid: #2b3138;
  --good: #7fd6a2; --good-ground: #16301f; --bad: #ff9c97; --bad-ground: #3d1a1b;
  --open: #f2c46d; --open-ground: #36290f;
  --fault: #ffab5a2b; --edge: #eda762; --chip: #4a2f15; --chip-ink: #ffd9b3; --focus: #78b8f2;
  --l0: #64b5f6; --l1: #ff9a5c; --l2: #4fd1a1; --l3: #dfa0dc; --l4: #e6cc5a; --l5: #c3cad2;
  --h0: #332b20; --h1: #1d3b57; --h2: #215379; --h3: #2a6d9c;
  --h4: #3e8abb; --h5: #63a8d2; --h6: #98c8e4; --h7: #d8edf8;
  --track: #262b31; --name: #f4f6f8;
  --m0: #2b5f8a; --m1: #7d5318; --m2: #2a6a49; --m3: #6a4778;
  --m4: #635811; --m5: #80403a; --m6: #545a62; --m7: #1f656b;
"""

PAGE = """
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1240px; padding: 28px 28px 40px; background: var(--ground); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif; }
h1 { font-size: 26px; line-height: 1.25; margin: 0 0 10px; overflow-wrap: anywhere; }
h2 { font-size: 18px; margin: 36px 0 10px; }
h3 { font-size: 15px; margin: 0; overflow-wrap: anywhere; }
p { margin: 0; }
ul, dl, dd, figure { margin: 0; padding: 0; }
ul { list-style: none; }
.note, figcaption p, .unit, footer { color: var(--soft); font-size: 13px; }
footer { margin-top: 28px; border-top: 1px solid var(--rule); padding-top: 12px; }

.facts { display: flex; flex-wrap: wrap; gap: 2px 26px; margin-bottom: 18px; }
.facts div { display: flex; gap: 7px; min-width: 0; }
.facts dt { color: var(--soft); }
.facts dd { overflow-wrap: anywhere; }
.icon { width: 1em; height: 1em; fill: none; stroke: currentColor; stroke-width: 3; stroke-linecap: round;
  stroke-linejoin: round; flex: none; }
.verdict { display: flex; gap: 14px; align-items: flex-start; padding: 14px 18px; border-radius: 10px;
  border-left: 6px solid; font-size: 19px; }
.verdict .icon { margin-top: 4px; width: 22px; height: 22px; }
.verdict p { font-size: 15px; }
.verdict.good { color: var(--good); background: var(--good-ground); }
.verdict.bad { color: var(--bad); background: var(--bad-ground); }
.verdict.open { color: var(--open); background: var(--open-ground); }

.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(180px, 1fr)); background: var(--paper);
  border: 1px solid var(--rule); border-radius: 10px; overflow: hidden; }
.counts { grid-template-columns: repeat(auto-fit, minmax(210px, 1fr)); }
.tiles div { box-shadow: 0 0 0 .5px var(--rule); padding: 11px 16px 12px; min-width: 0; }
.tiles dt { color: var(--soft); font-size: 13px; }
.value { font-size: 22px; line-height: 1.3; font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
.value .icon { width: 16px; height: 16px; margin-right: 8px; }
.value .good { color: var(--good); }
.value .bad { color: var(--bad); font-weight: 700; }
.meaning { color: var(--soft); font-size: 13px; line-height: 1.35; }
.remarks { background: var(--paper); border: 1px solid var(--rule); border-radius: 10px; padding: 12px 18px; }
.remarks li { padding: 3px 0; overflow-wrap: anywhere; }

.sideways { overflow-x: auto; }
table { border-collapse: collapse; font-size: 14px; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: 5px 14px; border-bottom: 1px solid var(--rule); vertical-align: top; }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
thead th { color: var(--soft); font-weight: 500; white-space: nowrap; }
tbody th { font-weight: 500; overflow-wrap: anywhere; min-width: 70px; }
section > .sideways table { width: 100%; }
section > .sideways th, section > .sideways td { text-align: left; }
section > .sideways td { overflow-wrap: anywhere; }
section > .note { margin-bottom: 8px; }
.wide { margin-top: 10px; }
.wide td, .wide tbody th { white-space: nowrap; }
details { margin-top: 8px; font-size: 14px; }
summary { cursor: pointer; color: var(--soft); width: max-content; }
:focus-visible { outline: 2px solid var(--focus); outline-offset: 2px; border-radius: 3px; }
"""

CHARTS = """
.chart { background: var(--paper); border: 1px solid var(--rule); border-radius: 10px; padding: 16px 18px 14px;
  margin-bottom: 16px; }
figcaption { margin-bottom: 10px; }
.legend { display: flex; flex-wrap: wrap; gap: 4px 18px; font-size: 13px; margin-bottom: 10px; }
.legend li { display: flex; align-items: center; gap: 7px; min-width: 0; overflow-wrap: anywhere; }
.legend svg { width: 28px; height: 10px; flex: none; }
.swatch { width: 20px; height: 13px; border-radius: 2px; flex: none; border: 1px solid var(--rule); }
.frame { padding: 8px 26px 0 64px; }
.plot, .chips, .xs { position: relative; }
.inner, .over { position: absolute; inset: 0; }
.area { display: block; width: 100%; height: 100%; overflow: hidden; }
.y, .x { position: absolute; color: var(--soft); font-size: 12px; line-height: 1; white-space: nowrap; }
.y { right: 100%; margin-right: 9px; transform: translateY(50%); }
.x { top: 8px; transform: translateX(-50%); }
.xs { height: 24px; }
.chips { margin-bottom: 3px; }
.chip { position: absolute; white-space: nowrap; font-size: 11px; line-height: 15px; padding: 0 5px; border-radius: 3px;
  background: var(--chip); color: var(--chip-ink); }
.grid, .line, .edge { fill: none; vector-effect: non-scaling-stroke; }
.grid { stroke: var(--grid); stroke-width: 1; }
.line { stroke-width: 1.8; stroke-linejoin: round; stroke-linecap: round; }
.fault { fill: var(--fault); }
.edge { stroke: var(--edge); stroke-width: 1; stroke-dasharray: 3 3; }
.l0 { stroke: var(--l0); }
.l1 { stroke: var(--l1); stroke-dasharray: 7 4; }
.l2 { stroke: var(--l2); stroke-dasharray: 1 4; stroke-width: 2.4; }
.l3 { stroke: var(--l3); stroke-dasharray: 10 3 2 3; }
.l4 { stroke: var(--l4); stroke-dasharray: 4 2; }
.l5 { stroke: var(--l5); stroke-dasharray: 14 4; }
.dot { position: absolute; width: 8px; height: 8px; margin: 0 0 -4px -4px; border-radius: 50%; background: var(--l0);
  border: 1.5px solid var(--paper); }
.heat { fill: none; stroke-width: 1.02; shape-rendering: crispEdges; }
.track { background: var(--track); }
.bar { fill: none; stroke-width: .82; shape-rendering: crispEdges; }
.name { color: var(--name); font-size: 10px; line-height: 11px; padding: 0 3px; }
.over .name { position: absolute; margin-top: 1px; }
.legend .name { font-size: 12px; line-height: 17px; min-width: 20px; text-align: center; border-radius: 3px; }
.process { margin-bottom: 14px; }
.pair { display: grid; grid-template-columns: 1fr 1fr; gap: 14px; margin-top: 6px; }
.small { margin: 0; padding: 10px 14px 8px; min-width: 0; }
.small figcaption { font-size: 13px; color: var(--soft); margin-bottom: 4px; }
"""

NARROW = """
@media (max-width: 640px) {
  body { padding: 18px 14px 30px; }
  .tiles { grid-template-columns: 1fr 1fr; }
  .tiles div { padding: 9px 12px; }
  .chart { padding: 12px 10px 10px; }
  .frame { padding: 8px 20px 0 54px; }
  .x.fine, .chip.fine, .chip .word { display: none; }
  .pair { grid-template-columns: minmax(0, 1fr); }
  th, td { padding: 5px 8px; }
}
"""

PAPER = """
@media print {
  :root { color-scheme: light; }
  body { background: var(--paper); max-width: none; padding: 0; font-size: 12px; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  .chart, .process, .tiles, .verdict { break-inside: avoid; }
  h2 { break-after: avoid; }
  details:not([open]) { display: none; }
}
"""

LEVELS = "".join(f".h{level} {{ stroke: var(--h{level}); background: var(--h{level}); }}\n" for level in range(8))
MEMBERS = "".join(f".m{index} {{ stroke: var(--m{index}); background: var(--m{index}); }}\n" for index in range(8))

STYLE = "\n".join(
    (
        f":root {{{LIGHT}}}",
        f"@media screen and (prefers-color-scheme: dark) {{ :root {{{DARK}}} }}",
        *(PAGE, CHARTS, LEVELS, MEMBERS, NARROW, PAPER),
    )
)
