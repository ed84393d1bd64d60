"""Defines the style of the page on a wide screen, on a phone and on paper.

The text is always dark on a light background, with a contrast of at least 7 to 1. On a phone, each
table row is a block with labeled cells. On paper, page breaks do not split a
row that fits on a page.
"""

from __future__ import annotations

STYLE = """
*{box-sizing:border-box}
body{font:16px/1.5 system-ui,sans-serif;color:#1b1b1b;background:#fff;max-width:75rem;
  margin:0 auto;padding:1rem 1.5rem 3rem}
h1{font-size:1.7rem;line-height:1.25;margin:.2em 0 .4em}
h2{font-size:1.25rem;margin:2.2rem 0 .6rem;border-bottom:2px solid #1b1b1b}
p{margin:.4em 0;max-width:60rem}
header{border-left:.6rem solid #0b6b2e;padding:.2rem 0 .2rem 1rem}
header.loss{border-left:.6rem double #9b0018}
header.loss h1{color:#8a0015}
.kicker{font-weight:600;color:#444}
code{font:.92em/1.4 ui-monospace,monospace;background:#f1f1f1;padding:.05em .3em;
  border-radius:.2em;overflow-wrap:anywhere;-webkit-box-decoration-break:clone;
  box-decoration-break:clone}
code.command{display:block;margin:.15rem 0 .4rem;padding:.2em .4em}
code.command>span{display:inline-block;max-width:100%}
small{font-weight:400}
table{border-collapse:collapse;width:100%;margin:.8rem 0 1.4rem}
caption{text-align:left;font-weight:600;padding:.3rem 0}
th,td{padding:.4rem .7rem;text-align:left;vertical-align:top;border-bottom:1px solid #aaa;
  overflow-wrap:anywhere}
tbody td:not(.n)>span{display:block;min-width:4.5rem}
thead th{border-bottom:2px solid #555;overflow-wrap:normal}
tbody th{font-weight:600}
dl>div{display:grid;grid-template-columns:11rem 1fr;gap:.7rem;padding:.3rem 0;
  border-bottom:1px solid #aaa;break-inside:avoid}
dt{font-weight:600}
dd{margin:0;overflow-wrap:anywhere}
.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.bar{display:block;height:0;border-bottom:.5rem solid #2f6690;min-width:2px;margin-top:.25rem}
@media screen and (max-width:640px){
  body{padding:.6rem .8rem 2rem}
  h1{font-size:1.4rem}
  dl>div{grid-template-columns:minmax(6rem,34%) 1fr}
  table,caption,tbody,tr,td,th{display:block;width:100%}
  thead{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
  tbody tr{border:1px solid #888;border-radius:.3rem;margin:0 0 .8rem;padding:.3rem .6rem}
  tbody th,tbody td{border:0;padding:.2rem 0;display:grid;
    grid-template-columns:minmax(6rem,34%) 1fr;gap:.6rem;text-align:left;white-space:normal}
  tbody td>span,tbody td:not(.n)>span{min-width:0}
  tbody td.n{text-align:left}
  tbody td::before,tbody th::before{content:attr(data-label);color:#444;font-weight:400}
}
@media print{
  @page{margin:14mm}
  body{font-size:8.5pt;max-width:none;padding:0}
  h1{font-size:15pt} h2{font-size:12pt;break-after:avoid}
  thead{display:table-header-group;break-after:avoid}
  tr,header{break-inside:avoid}
  caption{break-after:avoid}
  th,td{padding:.25rem .4rem}
  code{background:none;padding:0}
  code.command{padding:0 0 0 .6em;border-left:1pt solid #777}
  *{-webkit-print-color-adjust:exact;print-color-adjust:exact}
}
"""
"""The style contains no URL, so that the page loads nothing."""
