"use strict";
// Draws the content of the page. What comes from the project only ever becomes text: no string is parsed as HTML.
(() => {
  const content = JSON.parse(document.getElementById("content").textContent);
  const at = (id) => document.getElementById(id);
  const BATCH = 40; // findings drawn at a time, as the reader comes near them
  const PRINTED = 500; // findings on paper
  const LONGEST = 8; // bars shown before the rest is asked for
  const ORDER = {
    severity: ["error", "warning", "info"],
    heat: ["hot", "warm", "cold", "unreached", ""],
    confidence: ["certain", "likely", "possible"],
  };
  const LABEL = { "": "no heat" };
  const lists = { open: content.findings, accepted: content.accepted };
  const KEYS = ["severity", "heat", "confidence", "rule", "folder", "owner", "file", "group"];

  // -- elements --

  function html(tag, attributes = {}, ...children) {
    return build(document.createElement(tag), attributes, children);
  }

  function svg(tag, attributes = {}, ...children) {
    return build(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
  }

  function build(element, attributes, children) {
    for (const [name, value] of Object.entries(attributes)) {
      if (name === "onclick" || name === "ontoggle") element.addEventListener(name.slice(2), value);
      else if (value !== false) element.setAttribute(name, value === true ? "" : value);
    }
    element.append(...children.flat(Infinity).filter((one) => one !== ""));
    return element;
  }

  const plural = (count, word) => `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;

  /** A text whose `quoted` parts are code. */
  function prose(text) {
    return text.split(/`([^`]*)`/).map((part, number) => (number % 2 ? html("code", {}, part) : part));
  }

  // -- what is asked for --

  const numbered = [...lists.open, ...lists.accepted];
  numbered.forEach((one, number) => {
    one.id = one.id || `n${number}`;
    one.rule = one.code;
    one.heat = one.heat || "";
    one.folder = one.file.includes("/") ? one.file.slice(0, one.file.lastIndexOf("/")) : ".";
    one.owner = one.owner || "nobody";
  });
  const owned = numbered.some((one) => one.owner !== "nobody");
  const alikes = new Map();
  for (const { group } of lists.open) alikes.set(group, (alikes.get(group) || 0) + 1);
  const names = new Map(numbered.map((one) => [one.code, one.name]));
  let state = {};

  function read() {
    const chosen = state.theme; // a link to a finding says nothing of colours
    const given = new URLSearchParams(location.hash.slice(1));
    state = { q: given.get("q") || "", view: given.get("view") === "accepted" ? "accepted" : "open" };
    state.theme = given.get("theme") || chosen || "";
    state.open = given.get("open") || "";
    for (const key of KEYS) state[key] = new Set(given.getAll(key));
  }

  function write() {
    const told = new URLSearchParams();
    if (state.q) told.set("q", state.q);
    if (state.view !== "open") told.set("view", state.view);
    for (const key of KEYS) for (const value of state[key]) told.append(key, value);
    if (state.theme) told.set("theme", state.theme);
    if (state.open) told.set("open", state.open);
    history.replaceState(null, "", `#${told}`);
  }

  function words(one) {
    if (one.words === undefined) {
      const source = one.frame ? one.frame.lines.map((line) => line.join("")).join(" ") : "";
      const hops = [...(one.flow || []), ...(one.evidence || [])].map((number) => content.places[number].join(" "));
      const parts = [one.code, one.name, one.message, one.file, one.scope, one.cure, one.owner, source, ...hops];
      one.words = parts.join(" ").toLowerCase();
    }
    return one.words;
  }

  let matching = []; // the findings that pass every filter
  let tallies = {}; // for each kind of filter, how many pass all the others, by value

  /** One walk over the findings: one that fails a single filter still counts among the choices of that filter. */
  function sift() {
    const asked = state.q.toLowerCase().split(/\s+/).filter(Boolean);
    const keys = KEYS.filter((key) => state[key].size);
    matching = [];
    tallies = Object.fromEntries(KEYS.map((key) => [key, new Map()]));
    for (const one of lists[state.view]) {
      const failed = keys.filter((key) => !state[key].has(one[key] || ""));
      const counts = failed.length < 2 && asked.every((word) => words(one).includes(word));
      if (counts && !failed.length) matching.push(one);
      for (const key of KEYS) {
        const met = counts && (!failed.length || failed[0] === key);
        tallies[key].set(one[key], (tallies[key].get(one[key]) || 0) + (met ? 1 : 0));
      }
    }
  }

  function tally(key) {
    const order = ORDER[key];
    const rank = ([a, m], [b, n]) => (order ? order.indexOf(a) - order.indexOf(b) : n - m || (a < b ? -1 : 1));
    return [...tallies[key]].sort(rank);
  }

  function choose(key, value) {
    if (!state[key].delete(value)) state[key].add(value);
    show();
  }

  // -- totals, bars and filters --

  function banners() {
    at("about").textContent = [
      `version ${content.version}`,
      `${plural(content.files[0], "file")} reported, ${content.files[1].toLocaleString("en")} linked`,
      content.torch ? `for torch ${content.torch}` : "",
    ].filter(Boolean).join(" \u00b7 ");
    at("banners").append(
      ...content.failures.map((text) => html("p", { class: "banner failed" }, html("b", {}, "Failed "), prose(text))),
      ...content.notes.map((text) => html("p", { class: "banner" }, html("b", {}, "Note "), prose(text))),
    );
    const [resolved, open] = content.calls;
    const hidden = Object.entries(content.hidden).map(([kind, count]) => `${count.toLocaleString("en")} ${kind}`);
    at("foot").textContent = [
      hidden.length ? `Hidden by the options of the run: ${hidden.join(", ")}.` : "",
      resolved + open ? `${open.toLocaleString("en")} of ${plural(resolved + open, "call")} unresolved.` : "",
    ].filter(Boolean).join(" ");
  }

  function tiles() {
    const { open, accepted } = lists;
    const count = (key, value) => open.filter((one) => one[key] === value).length;
    const told = [
      [open.length, open.length === 1 ? "finding" : "findings", ""],
      [count("severity", "error"), "errors", "error"],
      [count("heat", "hot"), "on a hot path", "hot"],
      [new Set(open.map((one) => one.file)).size, "files concerned", ""],
      [open.filter((one) => one.fix).length, "with a fix", "good"],
      [accepted.length, "accepted", ""],
    ];
    at("tiles").append(
      ...told.map(([number, label, kind]) =>
        html("div", { class: `tile ${number ? kind : ""}` }, html("b", {}, number.toLocaleString("en")), html("span", {}, label)),
      ),
    );
  }

  function bar(key, value, count, most) {
    const label = key === "rule" ? value : LABEL[value] ?? value;
    const length = `${most ? (100 * count) / most : 0}%`;
    const picture = svg(
      "svg", { class: "bar", "aria-hidden": "true" },
      svg("rect", { class: "track", width: "100%", height: "100%", rx: 3 }),
      svg("rect", { class: `fill ${key === "heat" ? `heat-${value || "none"}` : ""}`, width: length, height: "100%", rx: 3 }),
    );
    const about = key === "rule" ? html("span", { class: "about" }, names.get(value)) : "";
    return html(
      "button",
      {
        type: "button", class: "measure", "aria-pressed": String(state[key].has(value)),
        "aria-label": `${label} ${key === "rule" ? names.get(value) : ""}: ${plural(count, "finding")}`,
        title: key === "rule" ? names.get(value) : label, onclick: () => choose(key, value), "data-key": key, "data-value": value,
      },
      html("span", { class: "label" }, html("b", {}, label), about), picture, html("span", { class: "number" }, count.toLocaleString("en")),
    );
  }

  const unfolded = new Set();

  function panel(title, key) {
    const counted = tally(key).filter(([value, count]) => count || state[key].has(value));
    const most = Math.max(0, ...counted.map(([, count]) => count));
    const shown = unfolded.has(key) ? counted : counted.slice(0, LONGEST);
    const rest = counted.length - shown.length;
    const more = rest > 0 || unfolded.has(key)
      ? html("button", { type: "button", class: "quiet", onclick: () => { if (!unfolded.delete(key)) unfolded.add(key); show(); } },
        rest > 0 ? `${rest} more` : "Fewer")
      : "";
    return html(
      "div", { class: `panel ${key}` }, html("h2", {}, title),
      counted.length ? "" : html("p", { class: "none" }, "nothing"),
      shown.map(([value, count]) => bar(key, value, count, most)), more,
    );
  }

  function chips(key) {
    at(key).replaceChildren(
      ...tally(key).map(([value, count]) =>
        html(
          "button",
          { type: "button", class: `chip ${key}-${value || "none"}`, "aria-pressed": String(state[key].has(value)),
            "data-value": value, onclick: () => choose(key, value) },
          LABEL[value] ?? value, html("span", {}, count.toLocaleString("en")),
        ),
      ),
    );
  }

  function views() {
    at("view").hidden = !lists.accepted.length;
    at("view").replaceChildren(
      ...Object.entries(lists).map(([view, list]) =>
        html(
          "button",
          { type: "button", class: "chip view", "aria-pressed": String(state.view === view), "data-value": view,
            onclick: () => { state.view = view; show(); } },
          view, html("span", {}, list.length.toLocaleString("en")),
        ),
      ),
    );
  }

  /** A list to choose one of; filled once for a view, as it may be long. */
  function options(key, all) {
    const select = at(key);
    if (select.dataset.view !== state.view) {
      select.dataset.view = state.view;
      const values = [...tallies[key].keys()].sort((a, b) => (a < b ? -1 : 1));
      select.replaceChildren(
        html("option", { value: "" }, all),
        ...values.map((value) => html("option", { value }, key === "rule" ? `${value} ${names.get(value)}` : value)),
      );
    }
    const [first, ...rest] = state[key];
    select.value = rest.length ? "" : first ?? "";
    select.options[0].textContent = rest.length ? `${state[key].size} chosen` : all;
  }

  // -- a finding --

  const TOKENS = {
    py: /(?<comment>#.*)|(?<string>[rbfuRBFU]{0,2}(?:"(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?))|(?<number>\b\d[\w.]*)|(?<word>\b(?:False|None|True|and|as|assert|async|await|break|class|continue|def|del|elif|else|except|finally|for|from|global|if|import|in|is|lambda|nonlocal|not|or|pass|raise|return|try|while|with|yield|self)\b)|(?<call>\b\w+(?=\())/g,
    cpp: /(?<comment>\/\/.*|\/\*.*?(?:\*\/|$))|(?<string>"(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*')|(?<number>\b\d[\w.]*)|(?<word>\b(?:auto|bool|break|case|char|class|const|constexpr|continue|default|do|double|else|enum|extern|false|float|for|if|inline|int|int32_t|int64_t|long|namespace|new|nullptr|return|short|sizeof|static|struct|switch|template|this|true|typename|uint32_t|uint64_t|unsigned|using|void|while|__device__|__global__|__host__|__restrict__|__shared__)\b)|(?<call>\b\w+(?=[(<]))/g,
  };

  /** The pieces of a source line with their colours; what lies between two places is marked. */
  function colored(text, file, from = 0, to = 0) {
    const cuts = [];
    for (const met of text.matchAll(/\.(cuh?|c|cc|cpp|cxx|h|hh|hpp|hip|inl)$/.test(file) ? TOKENS.cpp : TOKENS.py)) {
      const kind = Object.keys(met.groups).find((name) => met.groups[name] !== undefined);
      cuts.push([met.index, met.index + met[0].length, kind]);
    }
    const run = (start, end) => {
      const parts = [];
      let done = start;
      for (const [first, last, kind] of cuts) {
        const [a, b] = [Math.max(first, done), Math.min(last, end)];
        if (a >= b) continue;
        parts.push(text.slice(done, a), html("span", { class: `t-${kind}` }, text.slice(a, b)));
        done = b;
      }
      return [...parts, text.slice(done, end)];
    };
    if (from >= to) return run(0, text.length);
    return [...run(0, from), html("mark", {}, run(from, to)), ...run(to, text.length)];
  }

  function frame(one) {
    if (!one.frame) return "";
    const rows = one.frame.lines.map((pieces, number) => {
      const [before, marked] = [pieces[0], pieces[1] ?? ""];
      const line = colored(pieces.join(""), one.file, before.length, pieces.length > 1 ? before.length + marked.length : 0);
      return html(
        "span", { class: pieces.length > 1 ? "line at" : "line" },
        html("span", { class: "row", "data-row": one.frame.row + number }), html("span", { class: "text" }, line, "\n"),
      );
    });
    return html("pre", { class: `frame ${one.severity}`, tabindex: 0, "aria-label": "Source" }, rows);
  }

  const LETTER = 7.3; // the width of a letter of the drawing; a little more than most fonts need
  const wide = (text) => [...text].reduce((sum, one) => sum + (one > "\u2e7f" ? 2 : 1), 0) * LETTER;

  /** The calls from a root to the place, each a step right of its caller. */
  function path(one) {
    const hops = one.flow.map((number) => content.places[number]);
    const picture = svg("svg", { class: "path", role: "img", "aria-label": `${plural(hops.length, "step")}: ${hops.map(([file, row, note]) => `${note}, ${file} row ${row}`).join("; ")}` });
    let [y, right, before] = [2, 0, null];
    hops.forEach(([file, row, note, source], number) => {
      const x = 2 + 26 * Math.min(number, 8);
      const place = `${file}:${row}`;
      const kind = number === hops.length - 1 ? "sync" : number === 0 && one.root ? `root heat-${one.heat || "none"}` : "call";
      const text = note.replaceAll("`", "");
      const width = 28 + Math.max(wide(text), wide(place), wide(source));
      const height = source ? 66 : 48;
      if (before !== null) {
        const [left, top] = [before.x + 13, before.y];
        const to = y + 23;
        const d = before.x === x ? `M${left} ${top}V${y}` : `M${left} ${top}V${to - 6}Q${left} ${to} ${left + 6} ${to}H${x - 2}`;
        picture.append(svg("path", { class: "edge", d }));
        if (before.x !== x) picture.append(svg("path", { class: "head", d: `M${x - 7} ${to - 4}L${x} ${to}L${x - 7} ${to + 4}z` }));
      }
      const box = svg("g", { class: `hop ${kind}` }, svg("title", {}, `${note}\n${place}\n${source}`),
        svg("rect", { x, y, width, height, rx: 7 }),
        svg("text", { class: "note", x: x + 14, y: y + 20 }, text),
        svg("text", { class: "place", x: x + 14, y: y + 37 }, place));
      if (source) box.append(svg("text", { class: "source", x: x + 14, y: y + 55 }, source));
      picture.append(box);
      right = Math.max(right, x + width + 2);
      before = { x, y: y + height };
      y += height + 12;
    });
    const height = Math.max(0, y - 10);
    for (const [name, value] of [["width", Math.ceil(right)], ["height", height], ["viewBox", `0 0 ${Math.ceil(right)} ${height}`]])
      picture.setAttribute(name, value);
    return html("div", { class: "drawing", tabindex: 0, role: "group", "aria-label": "Call path" }, picture);
  }

  function hops(title, numbers) {
    if (!numbers) return "";
    const items = numbers.map((number) => {
      const [file, row, note] = content.places[number];
      return html("li", {}, html("span", { class: "place" }, `${file}:${row}`), " ", prose(note));
    });
    return [html("h4", {}, title), html("ul", { class: "hops" }, items)];
  }

  function fold(kind, title, draw) {
    const element = html("details", { class: kind, ontoggle: () => {
      if (element.open && element.children.length === 1) element.append(...[draw()].flat());
    } }, html("summary", {}, title));
    return element;
  }

  function change(fix) {
    const lines = fix.lines.map(([sign, text]) =>
      sign === "@" ? html("span", { class: "hunk" }, `row ${text}\n`)
        : html("span", { class: { "+": "added", "-": "removed" }[sign] || "kept" }, `${sign} ${text}\n`));
    return [html("p", {}, prose(fix.message)), html("pre", { class: "diff", tabindex: 0 }, lines)];
  }

  function card(one) {
    const root = one.root ? [" from ", html("code", {}, one.root)] : "";
    const because = (one.evidence || []).length + (one.related || []).length;
    const accepted = one.accepted;
    const alike = one.group ? alikes.get(one.group) : 0;
    return html(
      "article", { class: `finding ${one.severity}`, id: `f-${one.id}`, tabindex: -1, "aria-label": `${one.code} ${one.file} row ${one.row}` },
      html(
        "header", {},
        html("span", { class: `sign ${one.severity}`, title: one.severity }, one.severity),
        one.url ? html("a", { class: "code", href: one.url, rel: "noreferrer" }, one.code) : html("span", { class: "code" }, one.code),
        html("h3", {}, one.name),
        html("span", { class: "spring" }),
        alike > 1 ? html("button", { type: "button", class: "badge one-cause", onclick: () => choose("group", one.group), "aria-pressed": String(state.group.has(one.group)) }, `one cause, ${alike} findings`) : "",
        one.heat ? html("span", { class: `badge heat-${one.heat}` }, one.heat) : "",
        html("span", { class: "badge" }, one.confidence),
        owned && one.owner !== "nobody" ? html("span", { class: "badge" }, one.owner) : "",
        html("a", { class: "anchor", href: `#${state.view === "open" ? "" : "view=accepted&"}open=${encodeURIComponent(one.id)}`, "aria-label": "Link to this finding" }, "#"),
      ),
      html("p", { class: "message" }, prose(one.message)),
      html("p", { class: "where" }, `${one.file}:${one.row}:${one.column}`, one.scope ? [" in ", html("code", {}, one.scope)] : ""),
      frame(one),
      accepted ? html("p", { class: "accepted" }, html("b", {}, "Accepted"),
        ` by ${accepted.form}${accepted.row ? ` in row ${accepted.row}` : ""}: `, accepted.reason || "no reason given",
        accepted.owner ? `, ${accepted.owner}` : "", accepted.until ? `, until ${accepted.until}` : "") : "",
      one.cure ? html("div", { class: "cure" }, html("h4", {}, "Instead"), one.cure.includes("`") ? html("p", {}, prose(one.cure)) : html("pre", { tabindex: 0 }, one.cure)) : "",
      html(
        "div", { class: "folds" },
        one.flow ? fold("chain", [one.heat ? "Call path" : "Shown by", ` \u00b7 ${plural(one.flow.length, "step")}`, root], () => path(one)) : "",
        because ? fold("because", `Believed because \u00b7 ${plural(because, "place")}`, () => [hops("Evidence", one.evidence), hops("Related", one.related)].flat().filter(Boolean)) : "",
        one.fix ? fold("fix", `Fix \u00b7 ${one.fix.applicability}`, () => change(one.fix)) : "",
      ),
    );
  }

  // -- the list --

  let drawn = 0;
  let inFile = null;

  function draw(upTo) {
    const end = Math.min(matching.length, upTo);
    for (; drawn < end; drawn += 1) {
      const one = matching[drawn];
      if (inFile === null || inFile.dataset.file !== one.file) {
        const count = perFile.get(one.file);
        inFile = html("section", { class: "file", "data-file": one.file },
          html("h2", {}, html("span", { class: "path-name" }, one.file), html("span", { class: "number" }, count.toLocaleString("en"))));
        at("results").append(inFile);
      }
      inFile.append(card(one));
    }
    const left = matching.length - drawn;
    at("more").hidden = left === 0;
    at("more").textContent = `Show more: ${left.toLocaleString("en")} left`;
  }

  let perFile = new Map();

  function show() {
    write();
    theme();
    sift();
    views();
    for (const key of ["heat", "severity", "confidence"]) chips(key);
    options("rule", "All rules");
    options("file", "All files");
    at("panels").replaceChildren(panel("By rule", "rule"), panel("By heat", "heat"), owned ? panel("By owner", "owner") : panel("By folder", "folder"));
    perFile = new Map();
    for (const one of matching) perFile.set(one.file, (perFile.get(one.file) || 0) + 1);
    at("count").textContent = `${matching.length.toLocaleString("en")} of ${plural(lists[state.view].length, "finding")}`;
    at("clear").disabled = !state.q && KEYS.every((key) => !state[key].size);
    at("unfold").textContent = "Expand all";
    at("results").replaceChildren();
    [drawn, inFile] = [0, null];
    if (!matching.length) at("results").append(html("p", { class: "empty" }, numbered.length ? "No finding passes these filters." : "Nothing was found."));
    draw(BATCH);
    reveal();
  }

  /** Open the finding that the address names. */
  function reveal() {
    const number = state.open ? matching.findIndex((one) => one.id === state.open) : -1;
    if (number < 0) return;
    draw(number + 5);
    const element = at(`f-${state.open}`);
    for (const part of element.querySelectorAll("details")) part.open = true;
    element.scrollIntoView({ block: "start" });
    element.focus({ preventScroll: true });
  }

  function theme() {
    const dark = state.theme ? state.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    document.documentElement.dataset.theme = dark ? "dark" : "light";
    at("theme").textContent = dark ? "Light" : "Dark";
    at("theme").setAttribute("aria-label", `Switch to ${dark ? "light" : "dark"} colours`);
  }

  function step(by) {
    const cards = [...document.querySelectorAll("article.finding")];
    const here = cards.indexOf(document.activeElement.closest("article.finding"));
    const next = Math.max(0, here + by);
    if (next >= cards.length) draw(drawn + BATCH);
    const card = document.querySelectorAll("article.finding")[next];
    if (card) {
      card.focus({ preventScroll: true });
      card.scrollIntoView({ block: "nearest" });
    }
  }

  // -- what the reader does --

  let waiting = 0;
  at("search").addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => { state.q = at("search").value; show(); }, 120);
  });
  for (const key of ["rule", "file"])
    at(key).addEventListener("change", () => { state[key] = new Set(at(key).value ? [at(key).value] : []); show(); });
  at("clear").addEventListener("click", () => {
    state.q = at("search").value = "";
    state.open = "";
    for (const key of KEYS) state[key].clear();
    show();
  });
  at("theme").addEventListener("click", () => {
    state.theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    write();
    theme();
  });
  at("unfold").addEventListener("click", () => {
    const open = at("unfold").textContent === "Expand all";
    for (const part of document.querySelectorAll("article details")) part.open = open;
    at("unfold").textContent = open ? "Collapse all" : "Expand all";
  });
  at("skip").addEventListener("click", () => at("results").focus());
  at("more").addEventListener("click", () => draw(drawn + BATCH));
  new IntersectionObserver((seen) => { if (seen.some((one) => one.isIntersecting)) draw(drawn + BATCH); }, { rootMargin: "1200px" }).observe(at("more"));
  addEventListener("hashchange", () => { read(); at("search").value = state.q; show(); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", theme);
  addEventListener("beforeprint", () => draw(PRINTED));
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
    if (event.key === "Escape" && event.target === at("search")) at("search").blur();
    else if (typing) return;
    else if (event.key === "/") { event.preventDefault(); at("search").focus(); }
    else if (event.key === "j") step(1);
    else if (event.key === "k") step(-1);
  });

  read();
  at("search").value = state.q;
  banners();
  tiles();
  show();
  document.documentElement.dataset.ready = "yes";
})();
