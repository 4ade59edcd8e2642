#pragma once
/// The report's style and script, as they stand in the page.

namespace gmlake::tools {

inline constexpr char page_style[] = R"css(
:root{color-scheme:light dark;--bg:#fff;--panel:#f7f8fa;--ink:#1b2330;--soft:#5d6879;--line:#dfe3e9;--live:#3a72d8;
--live-top:#1f52b0;--lost:#f5d7a6;--lost-top:#c9862b;--stitch:#7b52c7;--pending:#c3cad6;--bad:#c0392b}
@media(prefers-color-scheme:dark){:root{--bg:#0f1318;--panel:#171c24;--ink:#e4e8ee;--soft:#98a3b3;--line:#2b323d;
--live:#4a7fd6;--live-top:#9cc0ff;--lost:#5b4523;--lost-top:#e0a24b;--stitch:#a584e8;--pending:#4a5361;--bad:#ef7a6d}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--ink);font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Liberation Sans",sans-serif;
font-variant-numeric:tabular-nums}
main{max-width:1180px;margin:0 auto;padding:40px 24px 64px}
h1{font-size:26px;line-height:1.25;margin:0 0 8px;letter-spacing:-.01em;text-wrap:balance}
h2{font-size:20px;margin:0 0 4px;letter-spacing:-.005em}
h3{font-size:13px;font-weight:600;margin:28px 0 10px;color:var(--soft)}
p{margin:0 0 12px;max-width:74ch}
.soft,.none{color:var(--soft)}
.none{font-size:13px;margin:6px 0 0}
section{border-top:1px solid var(--line);margin-top:44px;padding-top:28px}
figure{margin:0}
.panels{display:grid;grid-template-columns:1fr 1fr;gap:26px 34px}
.panels.one{grid-template-columns:1fr}
figcaption{display:flex;gap:10px;align-items:baseline;font-size:13px;margin-bottom:6px;color:var(--soft);min-height:20px}
figcaption b{color:var(--ink);font-size:14px}
figcaption .now{display:none;white-space:nowrap}
.reading .key{display:none}.reading .now{display:inline}
.plot{position:relative;margin-left:50px;touch-action:pan-y;cursor:crosshair}
.plot svg{display:block;width:100%;height:190px;overflow:visible}
.one .plot svg{height:260px}
.y span,.x span{position:absolute;font-size:11px;color:var(--soft);white-space:nowrap;line-height:14px}
.y span{right:100%;margin-right:8px;transform:translateY(50%)}
.x{position:relative;height:20px;margin-left:50px}
.x span{top:5px;transform:translateX(-50%)}
.x span:first-child{transform:none}
.x span.name{right:0;transform:none}
.cross{position:absolute;top:0;bottom:0;width:0;border-left:1px solid var(--ink);opacity:.55;display:none;pointer-events:none}
path{vector-effect:non-scaling-stroke}
.grid{stroke:var(--line);stroke-width:1;fill:none}
.lost,.free{fill:var(--lost)}
.live{fill:var(--live)}
.plot .live{fill-opacity:.9}
.edge{fill:none;stroke-width:1.5;stroke-linejoin:round}
.reserved{stroke:var(--lost-top)}.livetop{stroke:none}
.peak{fill:none;stroke:var(--ink);stroke-width:1;stroke-dasharray:4 4;opacity:.75}
.failed{stroke:var(--bad);stroke-width:2}
.pending{fill:var(--pending)}
.taken,.bar{fill:var(--stitch)}
.ribbon{fill:var(--stitch);fill-opacity:.3}
.bar{stroke:var(--bg);stroke-width:1}
.stitch:hover .ribbon{fill-opacity:.75}
.map{margin-bottom:18px}
.map svg{display:block;width:100%}
.map .flat{height:30px}.map .deep{height:140px}
.map figcaption{flex-wrap:wrap;margin-bottom:4px}
.stall{fill:var(--bad);fill-opacity:.16;stroke:var(--bad);stroke-width:1;stroke-opacity:.3}
.lanes{position:relative;margin:2px 0 10px 50px}
.lanes svg{display:block;width:100%;height:96px;overflow:hidden;background:var(--panel)}
.lanes .ribbon{fill-opacity:.12}.lanes .bar{stroke:var(--panel);stroke-width:.6}.lanes .few{fill:var(--stitch);fill-opacity:.55}
.move:hover .ribbon{fill-opacity:.6}.move:hover .bar{fill:var(--live-top)}
.legend{display:flex;flex-wrap:wrap;gap:4px 18px;font-size:13px;color:var(--soft);margin:0 0 14px;padding:0;list-style:none}
.legend i{display:inline-block;width:14px;height:10px;border-radius:2px;margin-right:6px}
.legend .dash{height:0;border-top:1px dashed var(--ink);border-radius:0;vertical-align:4px;width:18px}
.legend .l{background:var(--live)}.legend .f{background:var(--lost);border-top:2px solid var(--lost-top)}
.legend .s{background:var(--stitch)}.legend .w{background:var(--bad);opacity:.35}.legend .p{background:var(--pending)}
.scroll{overflow-x:auto;margin:22px 0 0}
table{border-collapse:collapse;width:100%;font-size:14px}
th,td{padding:6px 0 6px 18px;text-align:right;white-space:nowrap;border-bottom:1px solid var(--line)}
th{font-weight:500;color:var(--soft);font-size:12px;vertical-align:bottom}
th:first-child,td:first-child{text-align:left;padding-left:0}
tr.trace th{color:var(--ink);font-size:14px;font-weight:600;padding-top:16px;text-align:left}
tr.first td{font-weight:600}
td .bar-cell{display:inline-block;vertical-align:middle;width:110px;height:9px;margin-left:10px;background:none;text-align:left}
td .bar-cell i{display:inline-block;height:9px;vertical-align:top}
.bar-cell .a{background:var(--live)}.bar-cell .b{background:var(--lost);box-shadow:inset 0 0 0 1px var(--lost-top)}
.bad{color:var(--bad)}
@media(max-width:760px){main{padding:24px 16px 48px}h1{font-size:21px}.panels{grid-template-columns:1fr}
.wide{display:none}table{font-size:13px}th,td{padding-left:10px}td .bar-cell{width:56px;margin-left:8px}
.plot svg,.one .plot svg{height:170px}figcaption{flex-wrap:wrap;gap:0 10px}.key,figcaption .now{flex-basis:100%}}
)css";

// Reads the values back from the paths: "M0 y l1 dy 1 dy ...".
inline constexpr char page_script[] = R"js(
(() => {
  const size = n => n >= 2 ** 30 ? (n / 2 ** 30).toFixed(2) + ' GiB' : n >= 2 ** 20 ? (n / 2 ** 20).toFixed(1) + ' MiB' :
    (n / 1024).toFixed(0) + ' KiB';
  const values = path => {
    const n = path.getAttribute('d').slice(1).replace('l', ' ').trim().split(/\s+/).map(Number);
    const out = [n[1]];
    for (let i = 3; i < n.length; i += 2) out.push(out[out.length - 1] + n[i]);
    return out;
  };
  const cache = new Map();
  const series = (plot, kind) => {
    const path = plot.querySelector(kind);
    if (!cache.has(path)) cache.set(path, values(path));
    return cache.get(path);
  };
  for (const panels of document.querySelectorAll('.panels')) {
    const plots = [...panels.querySelectorAll('.plot')];
    const clear = () => plots.forEach(p => {
      p.parentNode.classList.remove('reading');
      p.querySelector('.cross').style.display = 'none';
    });
    const show = (source, event) => {
      const box = source.getBoundingClientRect();
      const part = Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
      for (const p of plots) {
        const last = +p.dataset.last, i = Math.round(part * last);
        const live = series(p, '.livetop'), reserved = series(p, '.reserved');
        const cross = p.querySelector('.cross');
        cross.style.display = 'block';
        cross.style.left = 100 * i / last + '%';
        const at = v => size((1 - v / 10000) * p.dataset.top);
        p.parentNode.classList.add('reading');
        p.parentNode.querySelector('.now').textContent = p.dataset.unit ?
          `${(i * p.dataset.step).toFixed(1)} ms: ${at(live[i])} resident, ${at(reserved[i])} without swapping` :
          i < live.length ? `event ${(i * p.dataset.step).toLocaleString('en')}: ${at(live[i])} live, ${at(reserved[i])} reserved` : 'not reached';
      }
    };
    for (const p of plots) {
      p.addEventListener('pointermove', e => show(p, e));
      p.addEventListener('pointerdown', e => show(p, e));
      p.addEventListener('pointerleave', clear);
    }
  }
})();
)js";

}  // namespace gmlake::tools
