/* From a model and a set of open groups to a drawing.  No DOM here: the same lines run in the
   page, in its worker and in the engine that makes SVG files. */
"use strict";
var scene = (() => {
  const SANS = "system-ui, -apple-system, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif";
  const MONO = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace";
  // Long edges cost the layout one hidden node per rank; beyond so many, the longest become stubs.
  const LONG_EDGE_BUDGET = 350;
  const LONG = 4;

  const PALETTES = {
    light: {
      back: "#f7f8fa", card: "#ffffff", line: "#c3cad5", text: "#17202e", soft: "#5a6576",
      edge: "#8b95a5", leaf: "#e3eefc", leafLine: "#3b78c9", cut: "#fff0dd", cutLine: "#b85c00",
      group: "#f0ebfd", groupLine: "#7a57d1", root: "#1f2a3d", rootText: "#ffffff",
      memory: "#0f766e", memoryBack: "#d5f2ec", cluster: "#7a57d10f", accent: "#7b8798",
      mark: "#d81b60",
    },
    dark: {
      back: "#12161d", card: "#1d2430", line: "#3d485a", text: "#e9edf4", soft: "#a3aebf",
      edge: "#6f7c90", leaf: "#16304f", leafLine: "#6aa5f0", cut: "#43290c", cutLine: "#f0a04b",
      group: "#2b2348", groupLine: "#a78bfa", root: "#e9edf4", rootText: "#12161d",
      memory: "#7fe3d2", memoryBack: "#123d39", cluster: "#a78bfa14", accent: "#8c99ad",
      mark: "#ff6fa5",
    },
  };

  const escape = (text) => String(text).replace(/[&<>"']/g,
    (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" })[c]);

  const clip = (text, n) => (text.length > n ? text.slice(0, n - 1) + "\u2026" : text);

  // Estimated, so that one layout fits every machine; wide East Asian characters count double.
  const measure = (text, size, mono, bold) => {
    let units = 0;
    for (const c of text) units += c.codePointAt(0) > 0x2e80 ? 1.7 : 1;
    return units * size * (mono ? 0.605 : bold ? 0.6 : 0.55);
  };

  const bytes = (n) => {
    if (n < 1024) return `${n} B`;
    for (const unit of ["KiB", "MiB", "GiB"]) {
      n /= 1024;
      if (n < 1024) return `${n.toFixed(1)} ${unit}`;
    }
    return `${(n / 1024).toFixed(1)} TiB`;
  };

  const place = (model, site) => (site < 0 ? "" : `${model.sites[site].base}:${model.sites[site].line}`);
  const source = (model, site) => (site < 0 ? "" : model.sites[site].source);

  /* ---------------------------------------------------------------- what is visible */
  function standIns(model, open) {
    // Groups come parents first; null means that every group around is open.
    const of = new Array(model.groups.length).fill(null);
    model.groups.forEach((g, i) => {
      if (i === 0) return;
      const above = of[g.parent];
      of[i] = above !== null ? above : open.has(i) && !g.sealed ? null : i;
    });
    return of;
  }

  function view(model, open, options) {
    const of = standIns(model, open);
    const unitOf = (end) => {
      if (end < 0) {
        const g = -1 - end;
        return `g${of[g] === null ? g : of[g]}`;
      }
      const g = of[model.nodes[end].group];
      return g === null ? `n${end}` : `g${g}`;
    };
    const units = new Map();
    const hidden = (i) => model.nodes[i].kind === "constant" && !options.constants;
    model.nodes.forEach((node, i) => {
      if (hidden(i)) return;
      const key = unitOf(i);
      if (!units.has(key)) units.set(key, makeUnit(model, key, of));
    });
    model.groups.forEach((g, i) => {
      if (i > 0 && g.sealed && of[i] === i && !units.has(`g${i}`))
        units.set(`g${i}`, makeUnit(model, `g${i}`, of));
    });
    const edges = new Map();
    for (const [from, to, , output] of model.edges) {
      if (from >= 0 && hidden(from)) continue;
      const a = unitOf(from);
      const b = unitOf(to);
      if (a === b || !units.has(a) || !units.has(b)) continue;
      const key = `${a}>${b}`;
      const cut = a[0] === "n" && model.nodes[from].kind === "detached";
      const known = edges.get(key);
      if (known) known.count += 1;
      else edges.set(key, { from: a, to: b, cut, count: 1, output });
    }
    const result = { units, edges: [...edges.values()], clusters: [] };
    addStubs(model, result);
    addClusters(model, result, open);
    return result;
  }

  function makeUnit(model, key, of) {
    const index = Number(key.slice(1));
    if (key[0] === "g") {
      const g = model.groups[index];
      const unit = { key, kind: "group", index, parent: g.parent, lines: [] };
      const where = [place(model, g.site), source(model, g.site)].filter(Boolean).join("  ");
      unit.title = g.title;
      unit.lines = [clip(g.recipe, 36), clip(where, 40)].filter(Boolean);
      unit.memory = g.bytes ? bytes(g.bytes) : "";
      unit.count = `${g.operations.toLocaleString("en")} ops`;
      return size(unit);
    }
    const node = model.nodes[index];
    const unit = { key, kind: node.kind, index, parent: node.group, lines: [] };
    unit.title = clip(node.title, 30);
    if (node.shape) unit.lines.push(clip(node.shape, 40));
    if (node.kind === "op" || node.kind === "detached") {
      const where = [place(model, node.site), source(model, node.site)].filter(Boolean).join("  ");
      if (where) unit.lines.push(clip(where, 38));
    }
    unit.memory = node.freed ? "freed" : node.owned ? bytes(node.owned) : "";
    unit.freed = node.freed;
    return size(unit);
  }

  function size(unit) {
    const head = measure(unit.title, 13, false, true) + (unit.memory ? measure(unit.memory, 10.5, false) + 26 : 0);
    const group = unit.kind === "group" ? 30 + measure(unit.count, 10.5, false) : 0;
    const wide = Math.max(head + group, ...unit.lines.map((l) => measure(l, 10.5, true)));
    unit.width = Math.max(unit.kind === "op" || unit.kind === "group" ? 132 : 72, Math.ceil(wide) + 26);
    unit.height = 27 + 15 * unit.lines.length + (unit.kind === "group" ? 4 : 0);
    return unit;
  }

  /* Edges that run past many ranks make a layout slow and unreadable.  The longest, and those of
     leaves used in many places, end in a small copy beside their user instead. */
  function addStubs(model, v) {
    const rank = ranks(v);
    const span = (e) => rank.get(e.to) - rank.get(e.from);
    const users = new Map();
    for (const e of v.edges) users.set(e.from, (users.get(e.from) || 0) + 1);
    const isEnd = (k) => ["leaf", "constant"].includes(v.units.get(k).kind);
    const hanging = new Set();
    // A leaf has no rank of its own: it sits just above the first that uses it.
    for (const e of v.edges) if (isEnd(e.from)) {
      const now = rank.get(e.to) - 1;
      if (!hanging.has(e.from) || now < rank.get(e.from)) rank.set(e.from, now);
      hanging.add(e.from);
    }
    let total = 0;
    const candidates = [];
    for (const e of v.edges) {
      total += Math.max(0, span(e) - 1);
      if (span(e) > LONG) candidates.push(e);
    }
    candidates.sort((a, b) => span(b) - span(a));
    for (const e of candidates) {
      const many = isEnd(e.from) && users.get(e.from) > 2;
      if (!many && total <= LONG_EDGE_BUDGET) continue;
      total -= span(e) - 1;
      const target = v.units.get(e.to);
      const origin = v.units.get(e.from);
      const key = `r${v.units.size}`;
      const stub = {
        key, kind: "stub", of: e.from, parent: target.parent, lines: [],
        title: clip(origin.title, 22), memory: "", end: isEnd(e.from),
      };
      stub.width = measure(stub.title, 11, false) + 34;
      stub.height = 21;
      v.units.set(key, stub);
      e.from = key;
      e.stub = true;
      origin.copied = true;
    }
    // A leaf that is only seen through copies needs no box of its own.
    const drawn = new Set();
    for (const e of v.edges) drawn.add(e.from).add(e.to);
    for (const [key, unit] of v.units) if (unit.copied && !drawn.has(key)) v.units.delete(key);
  }

  function ranks(v) {
    const into = new Map();
    const out = new Map();
    for (const key of v.units.keys()) { into.set(key, 0); out.set(key, []); }
    for (const e of v.edges) { into.set(e.to, into.get(e.to) + 1); out.get(e.from).push(e.to); }
    const rank = new Map();
    const ready = [...into].filter(([, n]) => n === 0).map(([k]) => k);
    for (const key of ready) rank.set(key, 0);
    for (let i = 0; i < ready.length; i += 1) {
      for (const next of out.get(ready[i])) {
        rank.set(next, Math.max(rank.get(next) || 0, rank.get(ready[i]) + 1));
        into.set(next, into.get(next) - 1);
        if (into.get(next) === 0) ready.push(next);
      }
    }
    return rank;
  }

  function addClusters(model, v, open) {
    const needed = new Set();
    for (const unit of v.units.values())
      for (let g = unit.parent; g > 0; g = model.groups[g].parent) needed.add(g);
    v.clusters = [...needed].sort((a, b) => a - b).map((index) => {
      const parent = model.groups[index].parent;
      return { key: `c${index}`, index, parent: parent > 0 ? `c${parent}` : null };
    });
  }

  /* ---------------------------------------------------------------- layout */
  function request(v) {
    return {
      nodes: [...v.units.values()].map((u) => [u.key, u.width, u.height, u.parent > 0 ? `c${u.parent}` : null]),
      edges: v.edges.map((e) => [e.from, e.to, e.stub ? 4 : 1]),
      clusters: v.clusters.map((c) => [c.key, c.parent]),
    };
  }

  function layout(dagre, ask) {
    const compound = ask.clusters.length > 0;
    const g = new dagre.graphlib.Graph({ compound, multigraph: false });
    g.setGraph({ rankdir: "TB", ranksep: compound ? 26 : 34, nodesep: 26, edgesep: 14, marginx: 24, marginy: 24 });
    g.setDefaultEdgeLabel(() => ({}));
    for (const [key] of ask.clusters) g.setNode(key, {});
    for (const [key, parent] of ask.clusters) if (parent) g.setParent(key, parent);
    for (const [key, width, height, parent] of ask.nodes) {
      g.setNode(key, { width, height });
      if (parent) g.setParent(key, parent);
    }
    for (const [from, to, weight] of ask.edges) g.setEdge(from, to, { weight });
    dagre.layout(g);
    const box = (n) => ({ x: n.x, y: n.y, width: n.width, height: n.height });
    const answer = { nodes: {}, edges: [], clusters: {} };
    for (const [key] of ask.nodes) answer.nodes[key] = box(g.node(key));
    for (const [key] of ask.clusters) answer.clusters[key] = box(g.node(key));
    for (const [from, to] of ask.edges) answer.edges.push(g.edge(from, to).points.map((p) => [p.x, p.y]));
    answer.width = g.graph().width;
    answer.height = g.graph().height;
    return answer;
  }

  /* ---------------------------------------------------------------- drawing */
  const number = (x) => String(Math.round(x * 10) / 10);

  function curve(points) {
    let path = `M${number(points[0][0])},${number(points[0][1])}`;
    for (let i = 1; i < points.length; i += 1) {
      const [x0, y0] = points[i - 1];
      const [x1, y1] = points[i];
      const middle = number((y0 + y1) / 2);
      path += `C${number(x0)},${middle} ${number(x1)},${middle} ${number(x1)},${number(y1)}`;
    }
    return path;
  }

  function describe(model, unit) {
    if (unit.kind === "group") {
      const g = model.groups[unit.index];
      return `group ${g.title}: ${g.recipe}; ${unit.count}${unit.memory ? `, keeps ${unit.memory}` : ""}`;
    }
    if (unit.kind === "stub") return `${unit.title}, shown elsewhere`;
    const n = model.nodes[unit.index];
    const parts = [n.kind === "op" ? n.name : `${n.kind} ${n.title}`, n.shape, n.note];
    if (n.bytes) parts.push(`keeps ${bytes(n.bytes)}`);
    if (n.freed) parts.push("freed");
    if (n.site >= 0) parts.push(`${place(model, n.site)} ${source(model, n.site)}`);
    return parts.filter(Boolean).join(", ");
  }

  function box(unit, extra) {
    const { width, height } = unit;
    const round = unit.kind === "op" || unit.kind === "group" || unit.kind === "detached" ? 7 : Math.min(14, height / 2);
    return `<rect class="box" x="${number(-width / 2)}" y="${number(-height / 2)}" width="${number(width)}" height="${number(height)}" rx="${round}"${extra || ""}/>`;
  }

  function drawUnit(model, unit, at, options) {
    const { width, height } = unit;
    const left = -width / 2;
    const top = -height / 2;
    const label = escape(describe(model, unit));
    const out = [`<g class="node ${unit.kind}${unit.freed ? " freed" : ""}" data-key="${unit.key}"` +
      ` transform="translate(${number(at.x)},${number(at.y)})"` +
      (options.interactive ? ` tabindex="0" role="button" aria-label="${label}">` : `><title>${label}</title>`)];
    if (unit.kind === "stub") {
      out.push(box(unit));
      out.push(`<text class="small" x="${number(left + 12)}" y="4">\u21a5 ${escape(unit.title)}</text></g>`);
      return out.join("");
    }
    if (unit.kind === "group") {
      for (const shift of [8, 4]) out.push(`<g transform="translate(${shift},${shift})">${box(unit)}</g>`);
    }
    out.push(box(unit));
    if (unit.kind === "op")
      out.push(`<rect class="strip" x="${number(left)}" y="${number(top + 7)}" width="3" height="${number(height - 14)}" rx="1.5"/>`);
    let x = left + 13;
    if (unit.kind === "group") {
      out.push(`<g class="sign" transform="translate(${number(left + 17)},${number(top + 15)})"><circle r="7"/><path d="M-3.5,0H3.5M0,-3.5V3.5"/></g>`);
      x += 18;
    }
    out.push(`<text class="title" x="${number(x)}" y="${number(top + 19)}">${escape(unit.title)}</text>`);
    if (unit.kind === "group")
      out.push(`<text class="count" x="${number(x + measure(unit.title, 13, false, true) + 7)}" y="${number(top + 19)}">${escape(unit.count)}</text>`);
    if (unit.memory) {
      const wide = measure(unit.memory, 10.5, false) + 12;
      const start = width / 2 - wide - 7;
      out.push(`<rect class="chip" x="${number(start)}" y="${number(top + 7)}" width="${number(wide)}" height="16" rx="8"/>`);
      out.push(`<text class="chiptext" x="${number(start + wide / 2)}" y="${number(top + 18.6)}">${escape(unit.memory)}</text>`);
    }
    unit.lines.forEach((line, i) => {
      const soft = i > 0 || unit.kind === "group" ? "line soft" : "line";
      out.push(`<text class="${soft}" x="${number(left + 13)}" y="${number(top + 36 + 15 * i)}">${escape(line)}</text>`);
    });
    out.push("</g>");
    return out.join("");
  }

  function drawCluster(model, cluster, at, options) {
    const g = model.groups[cluster.index];
    const x = at.x - at.width / 2;
    const y = at.y - at.height / 2;
    const title = [g.title, place(model, g.site)].filter(Boolean).join("  ");
    const focus = options.interactive
      ? ` tabindex="0" role="button" aria-expanded="true" aria-label="close group ${escape(title)}"` : "";
    return `<g class="cluster" data-key="${cluster.key}"${focus}>` +
      `<rect x="${number(x)}" y="${number(y)}" width="${number(at.width)}" height="${number(at.height)}" rx="10"/>` +
      `<g class="sign" transform="translate(${number(x + 14)},${number(y + 13)})"><circle r="7"/><path d="M-3.5,0H3.5"/></g>` +
      `<text class="header" x="${number(x + 27)}" y="${number(y + 17)}">${escape(clip(title, Math.max(8, Math.floor((at.width - 36) / 6.6))))}</text></g>`;
  }

  function draw(model, v, at, options) {
    const out = [];
    for (const c of v.clusters) out.push(drawCluster(model, c, at.clusters[c.key], options));
    v.edges.forEach((e, i) => {
      const kind = e.cut ? "edge cut" : e.stub ? "edge stub" : "edge";
      out.push(`<path class="${kind}" data-from="${e.from}" data-to="${e.to}" d="${curve(at.edges[i])}" marker-end="url(#${e.cut ? "tee" : "arrow"})"/>`);
    });
    for (const unit of v.units.values()) out.push(drawUnit(model, unit, at.nodes[unit.key], options));
    return out.join("\n");
  }

  const MARKERS =
    '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">' +
    '<path class="head" d="M0,0.8L7.5,4L0,7.2Z"/></marker>' +
    '<marker id="tee" viewBox="0 0 6 10" refX="4" refY="5" markerWidth="6" markerHeight="10" orient="auto">' +
    '<path class="teehead" d="M3,0V10"/></marker></defs>';

  function style(p, scope) {
    const rules = `
svg text{font-family:${SANS};fill:${p.text}}
.title{font-size:13px;font-weight:650}
.line{font-family:${MONO} !important;font-size:10.5px}
.soft,.count{fill:${p.soft} !important}
.small{font-size:11px}.count,.chiptext{font-size:10.5px}
.chiptext{text-anchor:middle;fill:${p.memory} !important;font-weight:600}
.chip{fill:${p.memoryBack}}
.header{font-size:11.5px;font-weight:600;fill:${p.groupLine} !important}
.box{fill:${p.card};stroke:${p.line};stroke-width:1.1}
.strip{fill:${p.accent}}
.leaf .box{fill:${p.leaf};stroke:${p.leafLine}}
.constant .box{fill:none;stroke:${p.line};stroke-dasharray:2 3}
.detached .box{fill:${p.cut};stroke:${p.cutLine};stroke-dasharray:5 3}
.detached .title{fill:${p.cutLine}}
.group .box{fill:${p.group};stroke:${p.groupLine}}
.stub .box{fill:${p.back};stroke:${p.line};stroke-dasharray:3 2}
.root .box{fill:${p.root};stroke:${p.root}}.root text{fill:${p.rootText}}
.freed .chip{fill:none;stroke:${p.line}}.freed .chiptext{fill:${p.soft} !important}
.cluster>rect{fill:${p.cluster};stroke:${p.groupLine};stroke-opacity:.55;stroke-dasharray:4 4}
.sign circle{fill:${p.card};stroke:${p.groupLine}}.sign path{stroke:${p.groupLine};stroke-width:1.6}
.edge{fill:none;stroke:${p.edge};stroke-width:1.3}
.edge.stub{stroke-dasharray:3 3}
.edge.cut{stroke:${p.cutLine};stroke-dasharray:5 4}
.head{fill:${p.edge}}.teehead{stroke:${p.cutLine};stroke-width:2;fill:none}`;
    if (!scope) return rules;
    return rules.replace(/(^|\})\s*([^{}]+)\{/g, (_, close, names) =>
      `${close}\n${names.split(",").map((n) => `${scope} ${n.trim()}`).join(",")}{`);
  }

  /* A whole SVG document, in the colours of the reader's system. */
  function svg(model, v, at) {
    const width = Math.ceil(at.width);
    const height = Math.ceil(at.height) + 30;
    return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 -30 ${width} ${height}" role="img">` +
      `<title>${escape(model.headline)}</title><style>${style(PALETTES.light)}\n.back{fill:${PALETTES.light.back}}\n` +
      `@media (prefers-color-scheme:dark){${style(PALETTES.dark)}\n.back{fill:${PALETTES.dark.back}}}</style>${MARKERS}` +
      `<rect class="back" y="-30" width="${width}" height="${height}"/>` +
      `<text class="count" x="14" y="-11">${escape(clip(model.headline, Math.max(20, Math.floor(width / 6.2))))}</text>\n` +
      `${draw(model, v, at, { interactive: false })}\n</svg>\n`;
  }

  const openAtFirst = (model) => new Set(model.groups.flatMap((g, i) => (g.open ? [i] : [])));

  return { PALETTES, MARKERS, SANS, MONO, bytes, draw, escape, layout, openAtFirst, place, request, source, standIns, style, svg, view };
})();
