/* The page: pan and zoom, groups, search, details.  Everything drawn comes from scene.js. */
"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  const model = scene.load($("model").textContent);
  const { bytes, escape } = scene;
  const open = scene.openAtFirst(model);
  const state = { x: 0, y: 0, zoom: 1, view: null, at: null, chosen: null, hits: [], hit: -1, constants: false };
  const stage = $("stage");
  const layer = $("layer");

  /* ------------------------------------------------------------ colours */
  function applyTheme(name) {
    const p = scene.PALETTES[name];
    const kebab = (k) => k.replace(/[A-Z]/g, (c) => `-${c.toLowerCase()}`);
    const names = Object.entries(p).map(([k, value]) => `--${kebab(k)}:${value}`).join(";");
    $("theme-style").textContent = `:root{${names};--sans:${scene.SANS};--mono:${scene.MONO};color-scheme:${name}}${scene.style(p, "main")}`;
    document.documentElement.dataset.theme = name;
  }
  const prefersDark = window.matchMedia("(prefers-color-scheme: dark)");
  applyTheme(prefersDark.matches ? "dark" : "light");
  prefersDark.addEventListener("change", (e) => applyTheme(e.matches ? "dark" : "light"));
  $("theme").onclick = () => applyTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");

  /* ------------------------------------------------------------ layout, off the main thread */
  const SMALL = 90; // boxes: laid out at once, sooner than a worker starts
  let worker = null;
  let blob = null;
  function newWorker() {
    const code = `${$("dagre-code").textContent}\n;${$("scene-code").textContent}\n` +
      ";onmessage=(e)=>{try{postMessage(scene.layout(dagre,e.data))}catch(x){postMessage({error:String(x)})}}";
    blob = blob || URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
    return new Worker(blob);
  }
  const onMainThread = (ask) => new Promise((done) => setTimeout(() => done(scene.layout(dagre, ask)), ask.nodes.length <= SMALL ? 0 : 20));
  function compute(ask) {
    if (worker) worker.terminate(); // an answer to an older question
    worker = null;
    if (ask.nodes.length <= SMALL) return onMainThread(ask);
    try {
      worker = newWorker();
    } catch {
      return onMainThread(ask); // workers are forbidden in some notebooks
    }
    const mine = worker;
    return new Promise((done, fail) => {
      mine.onmessage = (e) => (e.data.error ? fail(new Error(e.data.error)) : done(e.data));
      mine.onerror = (e) => { e.preventDefault(); mine.terminate(); onMainThread(ask).then(done, fail); };
      mine.postMessage(ask);
    });
  }

  /* `anchor`: the key of a unit that should stay where it is on the screen. */
  let turn = 0;
  async function render(anchor) {
    const mine = (turn += 1);
    const before = anchor && anchorPoint(anchor);
    const next = scene.view(model, open, { constants: state.constants });
    const clock = setTimeout(() => { $("busy").hidden = false; }, 250);
    let at;
    try {
      at = scene.complete(next, await compute(scene.request(next)));
    } catch (error) {
      if (mine === turn) { $("busy").textContent = `layout failed: ${error.message}`; $("busy").hidden = false; }
      return;
    } finally {
      clearTimeout(clock);
    }
    if (mine !== turn) return;
    $("busy").hidden = true;
    state.view = next;
    state.at = at;
    layer.innerHTML = scene.draw(model, next, at, { interactive: true });
    document.body.dataset.units = next.units.size;
    const after = before && anchorPoint(anchor);
    if (after && next.clusters.some((c) => c.key === `c${anchor.slice(1)}` && anchor[0] === "g")) showOpened(Number(anchor.slice(1)));
    else if (after) { state.x += (before[0] - after[0]) * state.zoom; state.y += (before[1] - after[1]) * state.zoom; move(); }
    else if (!before) fit();
    mark();
    document.body.dataset.ready = String(mine);
  }

  function anchorPoint(key) {
    if (!state.at) return null;
    const group = Number(key.slice(1));
    const found = state.at.nodes[key] || state.at.clusters[`c${group}`] ;
    return found ? [found.x, found.y - found.height / 2] : null;
  }

  /* ------------------------------------------------------------ pan and zoom */
  const move = () => layer.setAttribute("transform", `translate(${state.x},${state.y}) scale(${state.zoom})`);
  function fit() {
    const { width, height } = state.at;
    const room = stage.getBoundingClientRect();
    const legend = 34;
    const ideal = Math.min(room.width / width, (room.height - legend) / height, 1.25);
    // Never so small that nothing can be read: show the outputs' end instead.
    state.zoom = Math.max(ideal, 0.55);
    const output = [...state.view.units.values()].find((u) => u.kind === "root");
    const middle = width * state.zoom > room.width && output ? state.at.nodes[output.key].x : width / 2;
    state.x = room.width / 2 - middle * state.zoom;
    state.y = ideal >= 0.55 ? Math.max(0, (room.height - legend - height * state.zoom) / 2) : room.height - legend - height * state.zoom;
    move();
  }
  function zoomBy(factor, cx, cy) {
    const room = stage.getBoundingClientRect();
    const x = cx === undefined ? room.width / 2 : cx - room.left;
    const y = cy === undefined ? room.height / 2 : cy - room.top;
    const zoom = Math.min(4, Math.max(0.04, state.zoom * factor));
    state.x = x - ((x - state.x) * zoom) / state.zoom;
    state.y = y - ((y - state.y) * zoom) / state.zoom;
    state.zoom = zoom;
    move();
  }
  stage.addEventListener("wheel", (e) => {
    e.preventDefault();
    if (e.ctrlKey || e.metaKey) zoomBy(Math.exp(-e.deltaY / 250), e.clientX, e.clientY);
    else { state.x -= e.shiftKey ? e.deltaY : e.deltaX; state.y -= e.shiftKey ? 0 : e.deltaY; move(); }
  }, { passive: false });
  const fingers = new Map();
  let travelled = 0;
  stage.addEventListener("pointerdown", (e) => { fingers.set(e.pointerId, e); travelled = 0; });
  window.addEventListener("pointermove", (e) => {
    const last = fingers.get(e.pointerId);
    if (!last) return;
    const others = [...fingers.values()].filter((f) => f.pointerId !== e.pointerId);
    if (others.length) {
      const o = others[0];
      const apart = (f) => Math.hypot(f.clientX - o.clientX, f.clientY - o.clientY) || 1;
      zoomBy(apart(e) / apart(last), o.clientX, o.clientY);
    } else {
      state.x += e.clientX - last.clientX;
      state.y += e.clientY - last.clientY;
      move();
    }
    travelled += Math.abs(e.clientX - last.clientX) + Math.abs(e.clientY - last.clientY);
    if (travelled > 4) stage.classList.add("moving");
    fingers.set(e.pointerId, e);
  });
  for (const name of ["pointerup", "pointercancel"])
    window.addEventListener(name, (e) => { fingers.delete(e.pointerId); stage.classList.remove("moving"); });

  /* A group was opened: its header at the top, its first box in the middle. */
  function showOpened(index) {
    const room = stage.getBoundingClientRect();
    const cluster = state.at.clusters[`c${index}`];
    const inside = [...state.view.units.values()].filter((u) => u.kind !== "stub" && below(u.parent, index)).map((u) => state.at.nodes[u.key]);
    const first = inside.reduce((a, b) => (b.y < a.y ? b : a), inside[0] || cluster);
    const fits = cluster.width * state.zoom < room.width - 20;
    state.x = room.width / 2 - (fits ? cluster.x : first.x) * state.zoom;
    state.y = 24 - (cluster.y - cluster.height / 2) * state.zoom;
    move();
  }
  function centre(key) {
    const at = state.at.nodes[key];
    if (!at) return;
    const room = stage.getBoundingClientRect();
    state.zoom = Math.max(state.zoom, 0.75);
    state.x = room.width / 2 - at.x * state.zoom;
    state.y = room.height / 2 - at.y * state.zoom;
    move();
  }

  /* ------------------------------------------------------------ groups */
  function openGroup(index) {
    if (model.groups[index].sealed) return choose(`g${index}`);
    open.add(index);
    // The first iteration shows what all of them do.
    for (let g = index; model.groups[g].kind === "repeat";) {
      const first = model.groups.findIndex((c) => c.parent === g);
      if (first < 0 || model.groups[first].sealed) break;
      open.add(first);
      g = first;
    }
    return render(`g${index}`);
  }
  function closeGroup(index) {
    open.delete(index);
    return render(`g${index}`);
  }
  const below = (index, root) => { for (let g = index; g >= 0; g = model.groups[g].parent) if (g === root) return true; return false; };
  $("expand").onclick = () => { model.groups.forEach((g, i) => { if (!g.sealed) open.add(i); }); render(); };
  $("collapse").onclick = () => { open.clear(); open.add(0); render(); };
  $("fit").onclick = fit;
  $("closer").onclick = () => zoomBy(1.3);
  $("farther").onclick = () => zoomBy(1 / 1.3);
  $("constants").onclick = (e) => {
    state.constants = !state.constants;
    e.target.setAttribute("aria-pressed", String(state.constants));
    render();
  };
  for (const id of ["expand", "collapse"]) $(id).hidden = model.groups.length < 2;
  $("constants").hidden = !model.nodes.some((n) => n.kind === "constant");

  /* ------------------------------------------------------------ choosing */
  const unitAt = (target) => target.closest && target.closest("[data-key]");
  layer.addEventListener("click", (e) => {
    const found = unitAt(e.target);
    if (!found || travelled > 4) return;
    act(found.dataset.key);
  });
  function act(key) {
    const index = Number(key.slice(1));
    if (key[0] === "c") closeGroup(index);
    else if (key[0] === "g") { openGroup(index); choose(key); }
    else if (key[0] === "r") reveal(state.view.units.get(key).of);
    else choose(key);
  }
  function reveal(key) {
    const go = () => { choose(key); if (state.at.nodes[key]) centre(key); focusOn(key); };
    if (key[0] === "n") {
      let changed = false;
      for (let g = model.nodes[Number(key.slice(1))].group; g > 0; g = model.groups[g].parent)
        if (!open.has(g)) { open.add(g); changed = true; }
      if (changed) return render(key).then(go);
    }
    return go();
  }
  function focusOn(key) {
    const found = layer.querySelector(`[data-key="${key}"]`);
    if (found) found.focus({ preventScroll: true });
  }
  function choose(key) {
    state.chosen = key;
    mark();
    showTab("details");
    $("details").innerHTML = key[0] === "g" ? groupSheet(Number(key.slice(1))) : nodeSheet(Number(key.slice(1)));
    $("details").scrollTop = 0;
  }
  function mark() {
    for (const old of layer.querySelectorAll(".chosen")) old.classList.remove("chosen");
    const same = new Set([state.chosen]);
    for (const u of state.view.units.values()) if (u.kind === "stub" && u.of === state.chosen) same.add(u.key);
    for (const element of layer.children) {
      const d = element.dataset;
      if (same.has(d.key) || same.has(d.from) || same.has(d.to)) element.classList.add("chosen");
    }
    markHits();
  }

  /* ------------------------------------------------------------ the sheets */
  function sourceBlock(site) {
    if (site < 0) return "";
    const s = model.sites[site];
    const rows = (s.context.length ? s.context : [s.source]).map((text, i) => {
      const no = s.context.length ? s.first + i : s.line;
      return `<span class="row${no === s.line ? " here" : ""}"><span class="no">${no}</span>${escape(text) || " "}</span>`;
    });
    return `<h3>Source</h3><div class="soft-text mono">${escape(s.file)}:${s.line}, in ${escape(s.fn)}</div><pre>${rows.join("")}</pre>`;
  }
  const link = (end) => end < 0
    ? `<button class="link" data-go="g${-1 - end}">${escape(model.groups[-1 - end].title)}</button>`
    : `<button class="link" data-go="n${end}">${escape(model.nodes[end].title)}</button> <span class="soft-text">#${model.nodes[end].id}${end >= 0 && model.nodes[end].kind !== "op" ? `, ${model.nodes[end].kind}` : ""}</span>`;
  const endNote = (end) => (end >= 0 && ["detached", "constant"].includes(model.nodes[end].kind) ? `<div class="soft-text">${escape(model.nodes[end].note)}</div>` : "");
  function nodeSheet(i) {
    const n = model.nodes[i];
    const out = [`<h2>${escape(n.title)}</h2><div class="soft-text">${escape(n.kind === "op" ? n.name : n.kind === "root" ? "output" : n.kind)}, node #${n.id}${n.freed ? ", freed" : ""}</div>`];
    if (n.note) out.push(`<div>${escape(n.note)}</div>`);
    if (n.shape) out.push(`<h3>Result</h3><div class="mono">${escape(n.shape)}</div>`);
    out.push(sourceBlock(n.site));
    if (n.saved.length) {
      const rows = n.saved.map(([name, shape, dtype]) => `<tr><td class="mono">${escape(name)}</td><td class="mono">${escape(shape)} ${escape(dtype)}</td></tr>`);
      const shared = n.owned < n.bytes ? ` <span class="soft-text">(${bytes(n.owned)} that nothing before it keeps)</span>` : "";
      out.push(`<h3>Kept for backward</h3><div>${bytes(n.bytes)}${shared}</div><table>${rows.join("")}</table>`);
    } else if (n.kind === "op") out.push(`<h3>Kept for backward</h3><div class="soft-text">${n.freed ? "freed" : "nothing"}</div>`);
    const into = model.edges.filter((e) => e[1] === i);
    const from = model.edges.filter((e) => e[0] === i);
    if (into.length) out.push(`<h3>Inputs</h3><table>${into.map((e) => `<tr><td class="mono">${escape(e[4] || e[2])}</td><td>${link(e[0])}${e[3] ? ` <span class="soft-text">output ${e[3]}</span>` : ""}${endNote(e[0])}</td></tr>`).join("")}</table>`);
    if (from.length) out.push(`<h3>Used by</h3><table>${from.slice(0, 40).map((e) => `<tr><td>${link(e[1])}</td></tr>`).join("")}</table>${from.length > 40 ? `<div class="soft-text">and ${from.length - 40} more</div>` : ""}`);
    return out.join("");
  }
  function groupSheet(i) {
    const g = model.groups[i];
    const tail = g.sealed
      ? '<p class="soft-text">Too large to be listed in this page.</p>'
      : `<p><button data-toggle="${i}">${open.has(i) ? "Close" : "Open"} group</button></p>`;
    return `<h2>${escape(g.title)}</h2><div class="soft-text">${escape(g.recipe)}</div>${tail}` +
      `<table><tr><td>Operations</td><td class="n">${g.operations.toLocaleString("en")}</td></tr>` +
      `<tr><td>Leaves</td><td class="n">${g.leaves.toLocaleString("en")}</td></tr>` +
      `<tr><td>Kept for backward</td><td class="n">${bytes(g.bytes)}</td></tr></table>${sourceBlock(g.site)}`;
  }
  function memorySheet() {
    if (!model.lines.length) return '<p class="soft-text">Nothing is kept for backward.</p>';
    const most = model.lines[0].bytes;
    const rows = model.lines.map((l) => `<tr><td><button class="link" data-find="${escape(scene.place(model, l.site))}">${escape(scene.place(model, l.site))}</button>` +
      `<div class="mono soft-text">${escape(scene.source(model, l.site))}</div><div class="bar" style="width:${Math.max(1, (100 * l.bytes) / most)}%"></div></td><td class="n">${l.nodes}</td><td class="n">${bytes(l.bytes)}</td></tr>`);
    return `<h2>${bytes(model.kept)} kept for backward</h2><div class="soft-text">Each piece of memory once, at the line that kept it first. ${bytes(model.leafBytes)} of it is the leaves' own.</div>` +
      `<table><tr><th>Line</th><th class="n">Nodes</th><th class="n">Kept</th></tr>${rows.join("")}</table>`;
  }
  document.querySelector("aside").addEventListener("click", (e) => {
    const d = e.target.dataset;
    if (d.go) reveal(d.go);
    if (d.toggle) { const i = Number(d.toggle); (open.has(i) ? closeGroup(i) : openGroup(i)); choose(`g${i}`); }
    if (d.find) { $("search").value = d.find; search(); }
  });
  function showTab(name) {
    const aside = document.querySelector("aside");
    aside.hidden = false;
    for (const sheet of aside.querySelectorAll(".sheet")) sheet.hidden = sheet.id !== name;
    for (const tab of aside.querySelectorAll("[role=tab]")) {
      tab.setAttribute("aria-selected", String(tab.dataset.tab === name));
      tab.tabIndex = tab.dataset.tab === name ? 0 : -1;
    }
    if (name === "memory") $("memory").innerHTML = memorySheet();
  }
  for (const tab of document.querySelectorAll("[role=tab]")) {
    tab.onclick = () => showTab(tab.dataset.tab);
    tab.onkeydown = (e) => {
      const step = { ArrowRight: "nextElementSibling", ArrowLeft: "previousElementSibling" }[e.key];
      const next = step && tab[step];
      if (next && next.dataset.tab) { showTab(next.dataset.tab); next.focus(); }
    };
  }
  $("memory-button").onclick = () => showTab("memory");
  $("hide").onclick = () => { document.querySelector("aside").hidden = true; };

  /* ------------------------------------------------------------ hovering */
  const tip = $("tip");
  function showTip(element) {
    const key = element.dataset.key;
    if (key[0] === "c") return;
    const unit = state.view.units.get(key);
    const real = unit.kind === "stub" ? unit.of : key;
    const i = Number(real.slice(1));
    const thing = real[0] === "g" ? model.groups[i] : model.nodes[i];
    const parts = real[0] === "g"
      ? [`<b>${escape(thing.title)}</b> ${escape(thing.recipe)}`, `<div class="soft-text">${thing.operations.toLocaleString("en")} operations, keeps ${bytes(thing.bytes)}; ${thing.sealed ? "too large to open here" : "click to open"}</div>`]
      : [`<b>${escape(thing.kind === "op" ? thing.name : thing.title)}</b> <span class="mono">${escape(thing.shape)}</span>`,
        `<div class="soft-text">${[thing.note, thing.freed ? "freed" : thing.bytes ? `keeps ${bytes(thing.bytes)}: ${thing.saved.map((s) => s[0]).join(", ")}` : ""].filter(Boolean).map(escape).join("; ")}</div>`];
    if (thing.site >= 0) {
      const s = model.sites[thing.site];
      parts.push(`<code>${escape(s.source)}</code><div class="soft-text mono">${escape(s.short)}:${s.line}, in ${escape(s.fn)}</div>`);
    }
    tip.innerHTML = parts.join("");
    tip.hidden = false;
    const room = stage.getBoundingClientRect();
    const at = element.getBoundingClientRect();
    const own = tip.getBoundingClientRect();
    const y = at.bottom - room.top + 8;
    tip.style.left = `${Math.max(6, Math.min(at.left - room.left, room.width - own.width - 6))}px`;
    tip.style.top = `${y + own.height < room.height ? y : Math.max(6, at.top - room.top - own.height - 8)}px`;
  }
  for (const name of ["pointerover", "focusin"])
    layer.addEventListener(name, (e) => { const found = unitAt(e.target); if (found && !fingers.size && (name !== "focusin" || found.matches(":focus-visible"))) showTip(found); });
  for (const name of ["pointerout", "focusout"]) layer.addEventListener(name, () => { tip.hidden = true; });

  /* ------------------------------------------------------------ search */
  const haystack = model.nodes.map((n) => {
    const s = n.site >= 0 ? model.sites[n.site] : null;
    return [n.title, n.name, n.kind, n.shape, n.note, s && `${s.base}:${s.line}`, s && s.source, s && s.fn].filter(Boolean).join("\n").toLowerCase();
  });
  function search() {
    const words = $("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    state.hits = words.length ? haystack.flatMap((text, i) => (words.every((w) => text.includes(w)) && (state.constants || model.nodes[i].kind !== "constant") ? [i] : [])) : [];
    state.hit = -1;
    $("found").textContent = words.length ? `${state.hits.length.toLocaleString("en")} found` : "";
    markHits();
  }
  function markHits() {
    const of = scene.standIns(model, open);
    const keys = new Set(state.hits.map((i) => { const g = of[model.nodes[i].group]; return g === null ? `n${i}` : `g${g}`; }));
    stage.classList.toggle("searching", state.hits.length > 0);
    for (const element of layer.children) {
      const key = element.dataset.key;
      if (!key) continue;
      const unit = state.view.units.get(key);
      element.classList.toggle("hit", keys.has(key) || Boolean(unit && unit.of && keys.has(unit.of)));
    }
  }
  $("search").addEventListener("input", search);
  $("search").addEventListener("keydown", (e) => {
    if (e.key !== "Enter" || !state.hits.length) return;
    const step = e.shiftKey ? state.hits.length - 1 : 1;
    state.hit = state.hit < 0 ? 0 : (state.hit + step) % state.hits.length;
    $("found").textContent = `${state.hit + 1} of ${state.hits.length.toLocaleString("en")}`;
    const key = `n${state.hits[state.hit]}`;
    Promise.resolve(reveal(key)).then(() => $("search").focus());
  });

  /* ------------------------------------------------------------ keyboard */
  window.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const typing = e.target.matches("input, textarea");
    if (e.key === "Escape") { $("search").value = ""; search(); tip.hidden = true; state.chosen = null; mark(); return; }
    if (typing) return;
    const found = unitAt(e.target);
    if (e.key === "/") { e.preventDefault(); $("search").focus(); }
    else if (e.key === "+" || e.key === "=") zoomBy(1.3);
    else if (e.key === "-") zoomBy(1 / 1.3);
    else if (e.key === "f") fit();
    else if (found && (e.key === "Enter" || e.key === " ")) { e.preventDefault(); act(found.dataset.key); }
    else if (found && e.key.startsWith("Arrow")) {
      e.preventDefault();
      const key = found.dataset.key;
      const up = e.key === "ArrowUp" || e.key === "ArrowLeft";
      const next = state.view.edges.find((x) => (up ? x.to : x.from) === key);
      if (next) { focusOn(up ? next.from : next.to); centre(up ? next.from : next.to); }
    }
  });

  /* ------------------------------------------------------------ saving */
  $("save").onclick = () => {
    const text = scene.svg(model, state.view, state.at);
    const a = document.createElement("a");
    a.href = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
    a.download = "graph.svg";
    a.click();
    setTimeout(() => URL.revokeObjectURL(a.href), 1000);
  };

  $("tree").textContent = model.text;
  window.addEventListener("resize", () => { if (state.at && !state.touched) fit(); });
  stage.addEventListener("pointerdown", () => { state.touched = true; });
  stage.addEventListener("wheel", () => { state.touched = true; }, { passive: true });
  render();
})();
