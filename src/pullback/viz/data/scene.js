/* From a model and a set of open groups to a drawing.  No DOM here: the same lines run in the
   page, in its worker and in the engine that makes SVG files. */
"use strict";
var scene = (() => {
  const SANS = "system-ui, -apple-system, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif";
  const MONO = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace";
  // Long edges cost the layout one hidden node per rank; beyond so many, the longest become stubs.
  const LONG_EDGE_BUDGET = 350;
  const LONG = 4;
  const SIDE_GAP = 24; // pixels between a box and what stands at its left
  const MANY_STUBS = 4; // more beside one box become one

  const PALETTES = {
    light: {
      back: "#f7f8fa", card: "#ffffff", line: "#c3cad5", text: "#17202e", soft: "#5a6576",
      edge: "#8b95a5", leaf: "#e3eefc", leafLine: "#3b78c9", cut: "#fff0dd", cutLine: "#b85c00",
      group: "#f0ebfd", groupLine: "#7a57d1", root: "#1f2a3d", rootText: "#ffffff",
      memory: "#0f766e", memoryBack: "#d5f2ec", cluster: "#7a57d10d", accent: "#7b8798",
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
    return units * size * (mono ? 0.605 : bold ? 0.68 : 0.56);
  };

  const bytes = (n) => {
    if (n < 1024) return `${n} B`;
    for (const unit of ["KiB", "MiB", "GiB"]) {
      n /= 1024;
      if (n < 1024) return `${n.toFixed(1)} ${unit}`;
    }
    return `${(n / 1024).toFixed(1)} TiB`;
  };

  /* The model of a page, with what was left out of it filled in. */
  function load(text) {
    const model = JSON.parse(text);
    model.nodes = model.nodes.map((n) => ({ ...model.defaults.node, ...n }));
    model.groups = model.groups.map((g) => ({ ...model.defaults.group, ...g }));
    return model;
  }

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
    addSides(result);
    addClusters(model, result, open);
    return result;
  }

  function makeUnit(model, key, of) {
    const index = Number(key.slice(1));
    if (key[0] === "g") {
      const g = model.groups[index];
      const unit = { key, kind: "group", index, parent: g.parent, lines: [] };
      const where = [g.where, g.line && source(model, g.site)].filter(Boolean).join(" \u00b7 ");
      unit.title = g.title;
      unit.lines = [clip(g.recipe, 36), clip(where, 40)].filter(Boolean);
      unit.memory = g.bytes ? bytes(g.bytes) : "";
      unit.count = g.kind === "range" ? "" : `${g.operations.toLocaleString("en")} ops`;
      return size(unit);
    }
    const node = model.nodes[index];
    const unit = { key, kind: node.kind, index, parent: node.group, lines: [] };
    unit.title = clip(node.title, 30);
    if (node.shape) unit.lines.push(clip(node.shape, 40));
    if (node.kind === "op" || node.kind === "detached") {
      const where = [place(model, node.site), source(model, node.site)].filter(Boolean).join(" \u00b7 ");
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
    unit.height = 29 + 15 * unit.lines.length + (unit.lines.length ? 4 : 0);
    return unit;
  }

  function clusterTitle(model, index) {
    const g = model.groups[index];
    return [g.title, g.where].filter(Boolean).join(" \u00b7 ");
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
    const holds = (g, inner) => { for (let i = inner; i >= 0; i = model.groups[i].parent) if (i === g) return true; return false; };
    const enters = (e) => {
      const home = v.units.get(e.from).parent;
      const there = v.units.get(e.to).parent;
      return home !== there && holds(home, there);
    };
    let total = 0;
    const candidates = [];
    for (const e of v.edges) {
      total += Math.max(0, span(e) - 1);
      if (span(e) > LONG || (isEnd(e.from) && enters(e))) candidates.push(e);
    }
    candidates.sort((a, b) => span(b) - span(a));
    const replaced = new Map(); // user -> its edges that become stubs
    for (const e of candidates) {
      const many = isEnd(e.from) && users.get(e.from) > 2;
      if (!many && total <= LONG_EDGE_BUDGET) continue;
      total -= span(e) - 1;
      replaced.set(e.to, [...(replaced.get(e.to) || []), e]);
    }
    let serial = 0;
    const makeStub = (user, of, title) => {
      const key = `r${(serial += 1)}`;
      const stub = { key, kind: "stub", of, parent: v.units.get(user).parent, lines: [], title, memory: "" };
      stub.width = measure(stub.title, 11, false) + 34;
      stub.height = 21;
      v.units.set(key, stub);
      return key;
    };
    const gone = new Set();
    for (const [user, edges] of replaced) {
      const together = edges.length > MANY_STUBS && makeStub(user, user, `${edges.length} earlier results`);
      edges.forEach((e, i) => {
        const origin = v.units.get(e.from);
        origin.copied = true;
        if (together && i > 0) { gone.add(e); return; }
        e.from = together || makeStub(user, e.from, clip(origin.title, 22));
        e.stub = true;
      });
    }
    if (gone.size) v.edges = v.edges.filter((e) => !gone.has(e));
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

  /* What feeds one box only, and is no step itself, stands at its left: so the steps form a
     straight column. */
  function addSides(v) {
    const out = new Map();
    const into = new Map();
    for (const e of v.edges) {
      out.set(e.from, [...(out.get(e.from) || []), e]);
      into.set(e.to, [...(into.get(e.to) || []), e]);
    }
    const isSide = (e) => ["leaf", "constant", "detached", "stub"].includes(v.units.get(e.from).kind) &&
      out.get(e.from).length === 1 && v.units.get(e.from).parent === v.units.get(e.to).parent;
    for (const [key, edges] of into) {
      const host = v.units.get(key);
      const sides = edges.filter(isSide);
      const fed = sides.length < edges.length || edges.every((e) => e.stub);
      if (!sides.length || sides.length > 4 || !fed || host.kind === "root") continue;
      host.sides = sides.map((e) => e.from);
      for (const e of sides) { e.side = true; v.units.get(e.from).host = key; }
    }
  }

  function addClusters(model, v, open) {
    const needed = new Set();
    for (const unit of v.units.values())
      for (let g = unit.parent; g > 0; g = model.groups[g].parent) needed.add(g);
    v.clusters = [...needed].sort((a, b) => a - b).map((index) => {
      const parent = model.groups[index].parent;
      const width = measure(clusterTitle(model, index), 11.5, false, true) + 44;
      return { key: `c${index}`, index, parent: parent > 0 ? `c${parent}` : null, width: Math.min(width, 260) };
    });
  }

  /* ---------------------------------------------------------------- layout
     dagre lays out one container at a time, innermost first: an open group is a box in the
     container around it.  So each problem stays small, and a box never stretches over its
     neighbours.  An edge that crosses a border passes through a port: a point at the top (or
     bottom) of the group, one for each source outside (or inside). */
  function request(v) {
    const room = (u) => {
      if (!u.sides) return [u.width, u.height];
      const sides = u.sides.map((key) => v.units.get(key));
      // As much room at the right: the box itself stays in the middle of its column.
      return [u.width + 2 * (Math.max(...sides.map((s) => s.width)) + SIDE_GAP),
        Math.max(u.height, sides.reduce((sum, s) => sum + s.height + 6, -6))];
    };
    const inside = (u) => (u.parent > 0 ? `c${u.parent}` : "c0");
    return {
      nodes: [...v.units.values()].filter((u) => !u.host).map((u) => [u.key, ...room(u), inside(u), u.width, u.height]),
      edges: v.edges.filter((e) => !e.side).map((e) => [e.from, e.to, Math.min(e.count, 6)]),
      clusters: v.clusters.map((c) => [c.key, c.parent || "c0", c.width]),
    };
  }

  /* Adds what stands at the side, and puts all edges into the order of the view. */
  function complete(v, at) {
    for (const unit of v.units.values()) {
      if (!unit.sides) continue;
      const host = at.nodes[unit.key];
      const sides = unit.sides.map((key) => v.units.get(key));
      let y = host.y - sides.reduce((sum, s) => sum + s.height + 6, -6) / 2;
      for (const s of sides) {
        at.nodes[s.key] = { x: host.x - host.width / 2 - SIDE_GAP - s.width / 2, y: y + s.height / 2, width: s.width, height: s.height };
        y += s.height + 6;
      }
    }
    let next = 0;
    const all = v.edges.map((e) => {
      if (!e.side) return curve(at.edges[next++]);
      const from = at.nodes[e.from];
      const to = at.nodes[e.to];
      const x0 = from.x + from.width / 2;
      const x1 = to.x - to.width / 2;
      const y1 = Math.min(Math.max(from.y, to.y - to.height / 2 + 9), to.y + to.height / 2 - 9);
      const half = number((x0 + x1) / 2);
      return `M${number(x0)},${number(from.y)}C${half},${number(from.y)} ${half},${number(y1)} ${number(x1)},${number(y1)}`;
    });
    return { ...at, paths: all };
  }

  const PAD = { side: 16, top: 32, bottom: 16 };

  function layout(dagre, ask) {
    const parent = new Map(ask.clusters.map(([key, above]) => [key, above]));
    const boxes = new Map([["c0", { key: "c0", children: [], links: new Map(), ports: new Set() }]]);
    for (const [key, , least] of ask.clusters) boxes.set(key, { key, least, children: [], links: new Map(), ports: new Set() });
    for (const [key, above] of ask.clusters) boxes.get(above).children.push({ key, inner: boxes.get(key) });
    const home = new Map();
    for (const [key, roomWidth, roomHeight, above, width, height] of ask.nodes) {
      home.set(key, above);
      boxes.get(above).children.push({ key, width, height, roomWidth, roomHeight });
    }
    const routes = ask.edges.map(([from, to, weight]) => route(boxes, parent, home, from, to, weight));
    // Parents come before their children in `clusters`: backwards is innermost first.
    for (const [key] of [...ask.clusters].reverse()) arrange(dagre, boxes.get(key));
    arrange(dagre, boxes.get("c0"));
    return collect(ask, boxes, routes);
  }

  /* The links, container by container, that together carry one edge. */
  function route(boxes, parent, home, from, to, weight) {
    const up = [];
    for (let c = home.get(from); c; c = parent.get(c)) up.push(c);
    const down = [];
    let meet = home.get(to);
    for (; !up.includes(meet); meet = parent.get(meet)) down.unshift(meet);
    const steps = [];
    let at = from;
    const link = (container, a, b) => {
      const box = boxes.get(container);
      const key = `${a} ${b}`;
      const known = box.links.get(key);
      if (known) known.weight = Math.max(known.weight, weight);
      else box.links.set(key, { a, b, weight });
      for (const end of [a, b]) if (end[0] === "<" || end[0] === ">") box.ports.add(end);
      steps.push([container, key]);
    };
    for (const c of up.slice(0, up.indexOf(meet))) { link(c, at, `>${from}`); at = c; }
    const path = [...down, to];
    link(meet, at, path[0]);
    down.forEach((c, i) => link(c, `<${from}`, path[i + 1]));
    return { from, steps };
  }

  function arrange(dagre, box) {
    const g = new dagre.graphlib.Graph();
    const inner = box.key !== "c0";
    g.setGraph({ rankdir: "TB", ranksep: 34, nodesep: 26, edgesep: 14 });
    g.setDefaultEdgeLabel(() => ({}));
    for (const c of box.children)
      g.setNode(c.key, c.inner ? { width: c.inner.width, height: c.inner.height } : { width: c.roomWidth, height: c.roomHeight });
    for (const port of box.ports) g.setNode(port, { width: 2, height: 2 });
    for (const { a, b, weight } of box.links.values()) g.setEdge(a, b, { weight });
    // Two hidden nodes keep the ports at the very top and bottom.
    if (inner && box.ports.size) {
      const sources = g.sources();
      const sinks = g.sinks();
      g.setNode("top", { width: 1, height: 1 });
      g.setNode("end", { width: 1, height: 1 });
      for (const key of sources) g.setEdge("top", key, { weight: key[0] === "<" ? 50 : 0, minlen: 1 });
      for (const key of sinks) g.setEdge(key, "end", { weight: key[0] === ">" ? 50 : 0, minlen: 1 });
    }
    dagre.layout(g);
    let [left, right, top, bottom] = [Infinity, -Infinity, Infinity, -Infinity];
    const wide = (x, half) => { left = Math.min(left, x - half); right = Math.max(right, x + half); };
    for (const c of box.children) {
      const n = g.node(c.key);
      c.x = n.x;
      c.y = n.y;
      if (c.inner) { c.width = n.width; c.height = n.height; }
      wide(n.x, n.width / 2);
      top = Math.min(top, n.y - n.height / 2);
      bottom = Math.max(bottom, n.y + n.height / 2);
    }
    for (const port of box.ports) wide(g.node(port).x, 4);
    for (const link of box.links.values()) {
      link.points = g.edge(link.a, link.b).points.map((p) => [p.x, p.y]);
      for (const [x] of link.points) wide(x, 2);
    }
    const lack = inner ? (box.least || 0) - (right - left + 2 * PAD.side) : 0;
    if (lack > 0) { left -= lack / 2; right += lack / 2; }
    box.width = right - left + 2 * PAD.side;
    box.height = bottom - top + PAD.top + PAD.bottom;
    const dx = PAD.side - left;
    const dy = PAD.top - top;
    box.places = new Map();
    for (const c of box.children) {
      c.x += dx;
      c.y += dy;
      box.places.set(c.key, c);
    }
    for (const port of box.ports) box.places.set(port, { x: g.node(port).x + dx, y: port[0] === "<" ? 0 : box.height, width: 0, height: 0 });
    for (const link of box.links.values()) link.points = link.points.map(([x, y]) => [x + dx, y + dy]);
  }

  function collect(ask, boxes, routes) {
    const answer = { nodes: {}, clusters: {}, edges: [] };
    const corner = new Map([["c0", [0, 0]]]);
    for (const [key, above] of ask.clusters) {
      const [x, y] = corner.get(above);
      const at = boxes.get(above).places.get(key);
      corner.set(key, [x + at.x - at.width / 2, y + at.y - at.height / 2]);
      answer.clusters[key] = { x: x + at.x, y: y + at.y, width: at.width, height: at.height };
    }
    for (const [key, , , above, width, height] of ask.nodes) {
      const [x, y] = corner.get(above);
      const at = boxes.get(above).places.get(key);
      answer.nodes[key] = { x: x + at.x, y: y + at.y, width, height };
    }
    const within = (x, at, edge) => Math.min(Math.max(x, at.x - at.width * edge), at.x + at.width * edge);
    for (const { from, steps } of routes) {
      const path = [];
      for (const [container, name] of steps) {
        const box = boxes.get(container);
        const link = box.links.get(name);
        const [x, y] = corner.get(container);
        const a = box.places.get(link.a);
        const b = box.places.get(link.b);
        const points = link.points.slice(1, -1);
        const bends = points.length > 1 ? points : []; // between neighbours one curve is enough
        // Edges leave boxes at the bottom and enter at the top; a group, where its port is.
        const start = a.inner ? a.x - a.width / 2 + a.inner.places.get(`>${from}`).x : within(points[0][0], a, 0.36);
        const end = b.inner ? b.x - b.width / 2 + b.inner.places.get(`<${from}`).x : within(points[points.length - 1][0], b, 0.36);
        if (!path.length) path.push([x + start, y + a.y + a.height / 2]);
        for (const [px, py] of bends)
          if (py > a.y + a.height / 2 && py < b.y - b.height / 2) path.push([x + px, y + py]);
        path.push([x + end, y + b.y - b.height / 2]);
      }
      answer.edges.push(path);
    }
    answer.width = boxes.get("c0").width;
    answer.height = boxes.get("c0").height;
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
      out.push(`<text class="${soft}" x="${number(left + 13)}" y="${number(top + 38 + 15 * i)}">${escape(line)}</text>`);
    });
    out.push("</g>");
    return out.join("");
  }

  function drawCluster(model, cluster, at, options) {
    const x = at.x - at.width / 2;
    const y = at.y - at.height / 2;
    const title = clusterTitle(model, cluster.index);
    const focus = options.interactive
      ? ` tabindex="0" role="button" aria-expanded="true" aria-label="close group ${escape(title)}"` : "";
    return `<g class="cluster ${model.groups[cluster.index].kind}" data-key="${cluster.key}"${focus}>` +
      `<rect x="${number(x)}" y="${number(y)}" width="${number(at.width)}" height="${number(at.height)}" rx="10"/>` +
      `<g class="sign" transform="translate(${number(x + 14)},${number(y + 13)})"><circle r="7"/><path d="M-3.5,0H3.5"/></g>` +
      `<text class="header" x="${number(x + 27)}" y="${number(y + 17)}">${escape(clip(title, Math.max(8, Math.floor((at.width - 36) / 6.6))))}</text></g>`;
  }

  function draw(model, v, at, options) {
    const out = [];
    for (const c of v.clusters) out.push(drawCluster(model, c, at.clusters[c.key], options));
    v.edges.forEach((e, i) => {
      const kind = e.cut ? "edge cut" : e.stub ? "edge stub" : "edge";
      out.push(`<path class="${kind}" data-from="${e.from}" data-to="${e.to}" d="${at.paths[i]}" marker-end="url(#${e.cut ? "tee" : "arrow"})"/>`);
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
.cluster.iteration>rect,.cluster.range>rect{fill:none;stroke-opacity:.35}
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

  return { PALETTES, MARKERS, complete, SANS, MONO, bytes, draw, escape, layout, load, openAtFirst, place, request, source, standIns, style, svg, view };
})();
