#pragma once
/// The style and script of a plan's picture, as they stand in the page.

namespace gmlake::tools {

inline constexpr char picture_style[] = R"css(
:root{--z0:#23408e;--z1:#2f6fc4;--z2:#35a0b8;--z3:#86c596;--z4:#e8cf7a;
--k0:#3a72d8;--k1:#d39a3f;--k2:#7b52c7;--k3:#3a9a6b;--k4:#b8503f;--k5:#8a94a3}
@media(prefers-color-scheme:dark){:root{--z0:#7fa2ff;--z1:#4a86dc;--z2:#2f93ab;--z3:#4f8f63;--z4:#8c7a35;
--k0:#4a7fd6;--k1:#c08a3c;--k2:#8f6cd6;--k3:#3f9a70;--k4:#b95c4d;--k5:#6f7988}}
.picture{margin:26px 0 10px}
.picture figcaption{flex-wrap:wrap;justify-content:space-between;gap:4px 18px}
.picture .now{display:inline;color:var(--ink);min-height:20px}
.picture .stage{position:relative;height:600px;touch-action:pan-y;cursor:crosshair}
.picture canvas{position:absolute;inset:0;width:100%;height:100%}
.picture .options{display:flex;flex-wrap:wrap;gap:6px 20px;align-items:center;font-size:13px;color:var(--soft);margin-bottom:8px}
.picture .options ul{margin:0}
.picture button{font:inherit;font-size:13px;color:var(--soft);background:none;border:1px solid var(--line);border-radius:4px;
padding:1px 9px;margin-right:4px;cursor:pointer}
.picture button[aria-pressed=true]{color:var(--ink);background:var(--panel);border-color:var(--soft)}
.picture .legend .e{height:0;width:18px;border-radius:0;vertical-align:4px;border-top:2px solid var(--lost-top)}
.picture .legend .d{height:0;width:18px;border-radius:0;vertical-align:4px;border-top:2px dashed var(--ink)}
@media(max-width:760px){.picture .stage{height:420px}}
)css";

// A picture's numbers: buffers by birth (b: births as differences, l: lifetimes, o: offsets, s: sizes, t: streams),
// sizes in units; what wraps is drawn in two pieces.
inline constexpr char picture_script[] = R"js(
(() => {
  const size = n => n >= 2 ** 30 ? (n / 2 ** 30).toFixed(n < 10 * 2 ** 30 ? 2 : 1) + ' GiB' : n >= 2 ** 20 ?
    (n / 2 ** 20).toFixed(n < 100 * 2 ** 20 ? 1 : 0) + ' MiB' : n >= 1024 ? (n / 1024).toFixed(1) + ' KiB' : n + ' B';
  const count = n => Math.round(n).toLocaleString('en');
  const colour = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const round = (span, wanted, base) => {
    const power = base ** Math.floor(Math.log(span / wanted) / Math.log(base));
    const steps = base === 2 ? [1, 2] : [1, 2, 5, 10];
    return (steps.find(k => span / (k * power) <= wanted) || base) * power;
  };
  for (const figure of document.querySelectorAll('.picture')) {
    const d = JSON.parse(figure.querySelector('script').textContent);
    const n = d.b.length, birth = new Float64Array(n);
    for (let i = 0, at = 0; i < n; ++i) birth[i] = at += d.b[i];
    const largest = d.s.reduce((a, b) => Math.max(a, b), 1);
    const labels = [...new Set(d.phases.map(p => p[0]))];
    const phaseOf = t => {
      let k = -1;
      while (k + 1 < d.phases.length && d.phases[k + 1][1] <= t) ++k;
      return k < 0 ? 5 : Math.min(5, labels.indexOf(d.phases[k][0]));
    };
    const schemes = {
      size: {of: i => Math.min(4, Math.floor(Math.log(largest / d.s[i]) / Math.log(4))), prefix: '--z',
             legend: [0, 1, 2, 3, 4].map(k => k === 4 ? 'smaller' : 'over ' + size(largest * d.unit / 4 ** (k + 1)))},
      phase: {of: i => phaseOf(birth[i]), prefix: '--k', legend: labels.slice(0, 5).map(l => 'born after ' + l)},
      stream: {of: i => Math.min(5, d.t ? d.t[i] : 0), prefix: '--k', legend: d.streams},
    };
    let scheme = 'size', classes, view, drag = null;
    const whole = () => ({x0: 0, x1: d.end, y0: 0, y1: Math.max(d.height, d.bound) * 1.03});
    const stage = figure.querySelector('.stage'), [base, over] = figure.querySelectorAll('canvas');
    const now = figure.querySelector('.now'), key = figure.querySelector('.swatches');
    const box = () => {
      const w = stage.clientWidth, h = stage.clientHeight, live = Math.round(h * 0.2);
      return {w, h, left: 66, right: w - 4, top: 20, bottom: h - live - 40, liveTop: h - live - 22, liveBottom: h - 22};
    };
    const start = canvas => {
      const b = box(), ratio = window.devicePixelRatio || 1, g = canvas.getContext('2d');
      canvas.width = Math.round(b.w * ratio);
      canvas.height = Math.round(b.h * ratio);
      g.scale(ratio, ratio);
      g.font = '11px system-ui,-apple-system,"Segoe UI",Roboto,"Liberation Sans",sans-serif';
      return [g, b];
    };
    const X = (b, t) => b.left + (t - view.x0) / (view.x1 - view.x0) * (b.right - b.left);
    const Y = (b, o) => b.bottom - (o - view.y0) / (view.y1 - view.y0) * (b.bottom - b.top);
    const pieces = i => {
      const end = birth[i] + d.l[i];
      return end > d.end && d.wraps ? [[birth[i], d.end], [0, end - d.end]] : [[birth[i], end]];
    };
    const draw = () => {
      const [g, b] = start(base), soft = colour('--soft'), ink = colour('--ink');
      g.fillStyle = colour('--panel');
      g.fillRect(b.left, b.top, b.right - b.left, b.bottom - b.top);
      g.fillRect(b.left, b.liveTop, b.right - b.left, b.liveBottom - b.liveTop);
      g.save();
      g.beginPath();
      g.rect(b.left, b.top, b.right - b.left, b.bottom - b.top);
      g.clip();
      for (let k = 0; k < 6; ++k) {
        g.fillStyle = colour(schemes[scheme].prefix + k);
        for (let i = 0; i < n; ++i) {
          if (classes[i] !== k) continue;
          for (const [from, to] of pieces(i)) {
            if (to < view.x0 || from > view.x1 || d.o[i] > view.y1 || d.o[i] + d.s[i] < view.y0) continue;
            const x = X(b, from), y = Y(b, d.o[i] + d.s[i]);
            // Under half a pixel a buffer would fade away, and many of them together with it.
            const w = Math.max(0.5, X(b, to) - x), h = Math.max(0.5, Y(b, d.o[i]) - y);
            g.fillRect(x, y, w > 4 ? w - 0.6 : w, h > 4 ? h - 0.6 : h);
          }
        }
      }
      g.lineWidth = 1;
      g.strokeStyle = ink;
      g.globalAlpha = 0.35;
      for (const [, at] of d.phases) {
        if (at <= view.x0 || at >= view.x1) continue;
        g.beginPath(); g.moveTo(X(b, at), b.top); g.lineTo(X(b, at), b.bottom); g.stroke();
      }
      g.globalAlpha = 1;
      const level = (at, dash, style, y) => {
        g.setLineDash(dash);
        g.strokeStyle = style;
        g.lineWidth = 1.5;
        g.beginPath(); g.moveTo(b.left, y(at)); g.lineTo(b.right, y(at)); g.stroke();
        g.setLineDash([]);
      };
      level(d.height, [], colour('--lost-top'), o => Y(b, o));
      level(d.bound, [5, 4], ink, o => Y(b, o));
      g.restore();

      const top = Math.max(d.height, d.bound) * 1.08, LY = v => b.liveBottom - v / top * (b.liveBottom - b.liveTop);
      g.save();
      g.beginPath();
      g.rect(b.left, b.liveTop, b.right - b.left, b.liveBottom - b.liveTop);
      g.clip();
      g.fillStyle = colour('--live');
      g.globalAlpha = 0.9;
      g.beginPath();
      g.moveTo(X(b, 0), b.liveBottom);
      d.live.forEach((v, i) => {
        g.lineTo(X(b, i * d.end / d.live.length), LY(v));
        g.lineTo(X(b, (i + 1) * d.end / d.live.length), LY(v));
      });
      g.lineTo(X(b, d.end), b.liveBottom);
      g.fill();
      g.globalAlpha = 1;
      level(d.bound, [5, 4], ink, LY);
      g.restore();

      g.fillStyle = soft;
      g.textBaseline = 'middle';
      g.textAlign = 'right';
      const step = round((view.y1 - view.y0) * d.unit, 8, 2) / d.unit;
      for (let v = Math.ceil(view.y0 / step) * step; v <= view.y1; v += step) g.fillText(v ? size(v * d.unit) : '0', b.left - 8, Y(b, v));
      g.fillText('live', b.left - 8, (b.liveTop + b.liveBottom) / 2);
      g.textAlign = 'center';
      const tick = Math.max(1, round(view.x1 - view.x0, b.w > 600 ? 9 : 4, 10));
      for (let t = Math.ceil(view.x0 / tick) * tick; t <= view.x1; t += tick) {
        if (X(b, t) < b.right - 70) g.fillText(count(t), X(b, t), b.liveBottom + 12);
      }
      g.textAlign = 'right';
      g.fillText('events', b.right, b.liveBottom + 12);
      g.textAlign = 'left';
      let free = b.left;
      for (const [label, at] of d.phases) {
        const x = Math.max(b.left, X(b, at));
        if (at > view.x1 || x < free || at < view.x0 && label !== d.phases[0][0]) continue;
        const width = g.measureText(label).width, left = Math.min(x + 2, b.right - width);
        if (left < free) continue;
        g.fillText(label, left, b.top - 9);
        free = left + width + 14;
      }
    };
    const paint = () => {
      classes = Array.from({length: n}, (_, i) => schemes[scheme].of(i));
      const used = new Set(classes);
      key.innerHTML = '';
      schemes[scheme].legend.forEach((text, k) => {
        if (!used.has(k)) return;
        const item = document.createElement('li'), swatch = document.createElement('i');
        swatch.style.background = `var(${schemes[scheme].prefix}${k})`;
        item.append(swatch, text);
        key.append(item);
      });
      for (const button of figure.querySelectorAll('button[data-by]'))
        button.setAttribute('aria-pressed', button.dataset.by === scheme);
      draw();
    };
    const pointer = e => {
      const at = stage.getBoundingClientRect(), b = box();
      const x = e.clientX - at.left, y = e.clientY - at.top;
      return {b, x, y, t: view.x0 + (x - b.left) / (b.right - b.left) * (view.x1 - view.x0),
              o: view.y0 + (b.bottom - y) / (b.bottom - b.top) * (view.y1 - view.y0)};
    };
    const show = e => {
      const p = pointer(e), [g, b] = start(over);
      if (drag) {
        g.fillStyle = colour('--live');
        g.globalAlpha = 0.2;
        g.fillRect(drag.x, drag.y, p.x - drag.x, p.y - drag.y);
        g.globalAlpha = 1;
        g.strokeStyle = colour('--ink');
        g.strokeRect(drag.x, drag.y, p.x - drag.x, p.y - drag.y);
        return;
      }
      if (p.x < b.left || p.x > b.right || p.t < 0 || p.t > d.end) return now.textContent = '';
      g.strokeStyle = colour('--ink');
      g.globalAlpha = 0.5;
      g.beginPath(); g.moveTo(p.x, b.top); g.lineTo(p.x, b.liveBottom); g.stroke();
      g.globalAlpha = 1;
      const live = d.live[Math.min(d.live.length - 1, Math.floor(p.t / d.end * d.live.length))];
      let text = `event ${count(Math.floor(p.t))}: ${size(live * d.unit)} live`;
      for (let i = 0; i < n && p.y < b.bottom; ++i) {
        if (p.o < d.o[i] || p.o >= d.o[i] + d.s[i]) continue;
        const hit = pieces(i).find(([from, to]) => p.t >= from && p.t < to);
        if (!hit) continue;
        text = `${size(d.s[i] * d.unit)} at ${size(d.o[i] * d.unit)}, events ${count(birth[i])} to ${count(birth[i] + d.l[i])}` +
          (d.t ? `, stream ${d.t[i]}` : '') + `; ${size(live * d.unit)} live`;
        g.save();
        g.beginPath(); g.rect(b.left, b.top, b.right - b.left, b.bottom - b.top); g.clip();
        g.lineWidth = 2;
        for (const [from, to] of pieces(i)) {
          const y = Y(b, d.o[i] + d.s[i]);
          g.strokeRect(X(b, from), y, X(b, to) - X(b, from), Y(b, d.o[i]) - y);
        }
        g.restore();
        break;
      }
      now.textContent = text;
    };
    const zoom = to => { view = to; draw(); start(over); figure.querySelector('.out').hidden = false; };
    const reset = () => { view = whole(); draw(); start(over); figure.querySelector('.out').hidden = true; };
    stage.addEventListener('pointerdown', e => {
      if (e.pointerType !== 'mouse' || e.button) return;
      drag = pointer(e);
      stage.setPointerCapture(e.pointerId);
    });
    stage.addEventListener('pointerup', e => {
      if (!drag) return;
      const from = drag, to = pointer(e), b = to.b;
      drag = null;
      if (Math.abs(to.x - from.x) < 6 || from.x < b.left) return start(over);
      const next = {...view, x0: Math.max(0, Math.min(from.t, to.t)), x1: Math.min(d.end, Math.max(from.t, to.t))};
      // A drag along the time, or in the lower part, leaves the space as it is.
      if (Math.abs(to.y - from.y) >= 12 && from.y < b.bottom) {
        next.y0 = Math.max(0, Math.min(from.o, to.o));
        next.y1 = Math.min(whole().y1, Math.max(from.o, to.o));
      }
      if (next.x1 > next.x0 && next.y1 > next.y0) zoom(next);
    });
    stage.addEventListener('pointermove', show);
    stage.addEventListener('pointerleave', () => { if (!drag) { start(over); now.textContent = ''; } });
    stage.addEventListener('dblclick', reset);
    figure.querySelector('.out').addEventListener('click', reset);
    for (const button of figure.querySelectorAll('button[data-by]'))
      button.addEventListener('click', () => { scheme = button.dataset.by; paint(); });
    new ResizeObserver(draw).observe(stage);
    matchMedia('(prefers-color-scheme:dark)').addEventListener('change', paint);
    view = whole();
    paint();
  }
})();
)js";

}  // namespace gmlake::tools
