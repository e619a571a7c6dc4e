// Charts that a reader hovers, zooms and filters, and lists of statements that are searched. Reads what the page embeds; loads nothing.
"use strict";
(() => {
  const MARKS = ["circle", "square", "diamond", "triangle-up", "triangle-down", "pentagon", "star", "cross"];
  const DASHES = { ware: ["dash", "– –"], fluid: ["dot", "···"], burst: ["dashdot", "–·"] };  // of models: as lines, and in words
  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const dark = () => document.documentElement.dataset.theme === "dark";
  // Of lines that are of no algorithm (verdicts.css has them from Python).
  const lineColour = (n) => { const all = style("--bb-lines").split(" "); return seen(all[n % all.length]); };
  const channels = (colour) => [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16));
  const faded = (colour) => `rgba(${channels(colour).join(",")},${dark() ? 0.35 : 0.22})`;
  const luminance = (parts) => parts.map((c) => (c / 255) ** 2.2).reduce((sum, c, i) => sum + [0.2126, 0.7152, 0.0722][i] * c, 0);
  // A colour as it is drawn: on a dark page one that is too dark for it (less than 3 to 1, WCAG 2) is thinned with white.
  function seen(colour) {
    let parts = channels(colour);
    while (dark() && luminance(parts) < 0.14) parts = parts.map((c) => Math.round(c + (255 - c) * 0.15));
    return `#${parts.map((c) => c.toString(16).padStart(2, "0")).join("")}`;
  }
  const text = (value, digits = 6) => (typeof value === "number" ? String(Number(value.toPrecision(digits))) : String(value));
  // What a claim expects: its value, else its bounds.
  const goalWords = (goal, digits) => (goal[0] === null ? `${text(goal[1], digits)} to ${text(goal[2], digits)}` : text(goal[0], digits));
  // Plotly reads a little markup in names; what stands in results is words.
  const plain = (value) => text(value).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

  // An axis' name in two lines where one would be longer than the axis.
  const folded = (name) => {
    const middle = name.length / 2, spaces = [...name.matchAll(/ /g)].map((s) => s.index);
    const at = spaces.sort((a, b) => Math.abs(a - middle) - Math.abs(b - middle))[0];
    return name.length > 44 && at ? `${name.slice(0, at)}<br>${name.slice(at + 1)}` : name;
  };

  const element = (tag, content) => {
    const made = document.createElement(tag);
    if (content !== undefined) made.textContent = content;
    return made;
  };

  function choice(parent, label, options, chosen, changed) {
    const box = element("label", label);
    const select = element("select");
    for (const { value, name, group } of options) {
      let place = select;
      if (group) {
        place = [...select.querySelectorAll("optgroup")].find((g) => g.label === group);
        if (!place) { place = element("optgroup"); place.label = group; select.append(place); }
      }
      const option = element("option", name);
      option.value = value;
      place.append(option);
    }
    select.value = chosen;
    select.addEventListener("change", () => changed(select.value));
    box.append(select);
    parent.append(box);
  }

  function layout(xtitle, ytitle, logs) {
    const grid = style("--bb-line"), ink = style("--pst-color-text-base") || (dark() ? "#ddd" : "#222");
    const axis = { gridcolor: grid, linecolor: grid, zeroline: false, automargin: true, title: { font: { size: 14 } } };
    return {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { color: ink, size: 14, family: "inherit" },
      margin: { l: 56, r: 12, t: 12, b: 44 }, hovermode: "closest", dragmode: window.innerWidth < 700 ? "pan" : "zoom",
      xaxis: { ...axis, ...logs, title: { text: xtitle, ...axis.title } }, yaxis: { ...axis, title: { text: folded(ytitle), ...axis.title }, rangemode: "tozero" },
      legend: { orientation: "h", y: -0.2, yanchor: "top", x: 0, font: { size: 14 } },
      hoverlabel: { bgcolor: style("--pst-color-surface") || grid, font: { color: ink } },
    };
  }
  const SETTINGS = { responsive: true, displaylogo: false, displayModeBar: false, scrollZoom: false, doubleClick: "reset" };

  // How many curves of numbers and of names are drawn at first, the others one click away in the legend; and how many a legend has.
  const MOST_CURVES = 3, MOST_CASES = 6, MOST_NAMES = 8;

  // The values of which a few are shown at first: the smallest, the largest and one between.
  const first = (values) => (values.length <= MOST_CURVES ? values : [values[0], values[values.length >> 1], values[values.length - 1]]);

  // Of values on an axis those whose words do not run into each other; the first and the last are among them.
  function readable(values, log, words, width_px) {
    const at = (v) => (log ? Math.log(v) : v), [from, to] = [at(values[0]), at(values[values.length - 1])];
    const place = (v) => (to > from ? (at(v) - from) / (to - from) * width_px : 0), half = (v) => 4.2 * words(v).length + 5;
    const apart = (v, other) => Math.abs(place(v) - place(other)) >= half(v) + half(other), last = values[values.length - 1], found = [values[0]];
    for (const v of values.slice(1, -1)) if (apart(v, found[found.length - 1]) && apart(v, last)) found.push(v);
    return values.length > 1 ? [...found, last] : found;
  }

  function save(name, content, type) {
    const link = element("a");
    link.href = URL.createObjectURL(new Blob([content], { type }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  function chart(figure) {
    const data = JSON.parse(document.getElementById(figure.dataset.chart).textContent);
    const place = figure.querySelector(".bb-plot"), controls = figure.querySelector(".bb-controls");
    if (!data.metrics.length || !data.points.length) { place.textContent = "No good run has a number here."; return; }
    const numeric = (key) => key.values.every((v) => typeof v === "number");
    const swept = data.keys.map((key, i) => i).filter((i) => numeric(data.keys[i]) && data.keys[i].values.length > 1);
    const byLength = [...swept].sort((a, b) => data.keys[b].values.length - data.keys[a].values.length);
    const curvesOver = (x) => data.keys.filter((_, i) => i !== x).reduce((n, k) => n * k.values.length, 1);
    const state = { metric: data.metrics[0].name, x: byLength[0] ?? (data.keys.length ? 0 : -1), group: "", only: {}, kind: "lines" };
    const listed = data.keys.map((key, i) => i).filter((i) => data.keys[i].name !== "case");
    const mapped = (byLength.length > 1 ? byLength : listed).slice(0, 2).sort((a, b) => a - b);
    const canMap = mapped.length === 2 && mapped.every((i) => data.keys[i].values.length > 2);
    if (canMap && curvesOver(state.x) > 12) state.kind = "map";
    if (data.groups.length > 1 && curvesOver(state.x) > MOST_CURVES) state.group = data.groups[0].group;
    const metricOf = () => data.metrics.find((m) => m.name === state.metric);
    const groupsOf = (metric) => Object.keys(data.measured[metric.name]).filter((g) => g === "run" || !state.group || g === state.group);
    // What a group's flows are called at some points: by their algorithm there, if it is the same at all of them.
    const nameOf = (group, places) => {
      const found = new Set(data.flows[group] ? places.map((at) => data.flows[group][at]) : []);
      return found.size === 1 ? [...found][0] : data.groups.find((g) => g.group === group)?.label;
    };
    const wordsOf = (metric, places) => `${metric.label}${!metric.run && state.group && data.groups.length > 1 ? ` of ${nameOf(state.group, places)}` : ""}${metric.summed?.some((g) => !state.group || g === state.group) ? ", sum of flows" : ""}`;
    // The keys that neither axis of a map has: one value of each is shown.
    const others = () => data.keys.map((_, i) => i).filter((i) => !mapped.includes(i) && data.keys[i].values.length > 1 && !(metricOf().gain && data.keys[i].name === "case"));

    function build() {
      const active = document.activeElement, index = [...controls.querySelectorAll("select, button")].indexOf(active);
      controls.replaceChildren();
      const change = (name) => (value) => { state[name] = value; build(); draw(); };
      choice(controls, "Metric", data.metrics.map((m) => ({ value: m.name, name: m.label, group: m.kind })), state.metric, change("metric"));
      if (canMap) choice(controls, "Drawn as", [{ value: "lines", name: "curves" }, { value: "map", name: "map" }], state.kind, change("kind"));
      const map = state.kind === "map";
      // The flows that have the metric: not all do (CUBIC has no Startup of BBR's). A map is of one group of them.
      const there = metricOf().run ? [] : data.groups.filter((g) => g.group in data.measured[state.metric]);
      if (there.length && (map || state.group) && !there.some((g) => g.group === state.group)) state.group = there[0].group;
      if (data.keys.length > 1 && !map) {
        choice(controls, "Along", data.keys.map((k, i) => ({ value: String(i), name: k.label })), String(state.x), (v) => { state.x = Number(v); state.only = {}; build(); draw(); });
      }
      if (data.groups.length > 1 && there.length) {
        const all = map ? [] : [{ value: "", name: "all" }];
        choice(controls, "Flows", [...all, ...there.map((g) => ({ value: g.group, name: g.label }))], state.group, change("group"));
      }
      data.keys.forEach((key, i) => {
        if ((map ? !others().includes(i) : i === state.x) || key.values.length < 2) return;
        if (map) state.only[i] ||= "0";
        choice(controls, key.label, [...(map ? [] : [{ value: "", name: "all" }]), ...key.words.map((v, j) => ({ value: String(j), name: v }))],
          state.only[i] ?? "", (v) => { state.only[i] = v; draw(); });
      });
      const saved = element("span");
      saved.className = "bb-saved";
      const name = data.id.replaceAll("/", "-");
      const buttons = { PNG: () => Plotly.downloadImage(place, { format: "png", scale: 2, filename: name, width: 1000, height: 560 }),
        SVG: () => Plotly.downloadImage(place, { format: "svg", filename: name, width: 1000, height: 560 }),
        CSV: () => save(`${name}.csv`, csv(), "text/csv") };
      for (const [kind, action] of Object.entries(buttons)) {
        const button = element("button", kind);
        button.type = "button";
        button.title = kind === "CSV" ? "the numbers of this chart" : "the chart as a picture";
        button.addEventListener("click", action);
        saved.append(button);
      }
      controls.append(saved);
      if (index >= 0) controls.querySelectorAll("select, button")[index]?.focus();
    }

    const csv = () => [...figure.querySelectorAll(".bb-numbers tr")].map((row) => [...row.cells].map((cell) => `"${cell.textContent.replaceAll('"', '""')}"`).join(",")).join("\r\n");

    const chosen = (point, names) => names.every((i) => !state.only[i] || point.at[i] === Number(state.only[i]));

    // {name of a curve: the places of its points}, in the order of the axis.
    function lines() {
      const found = new Map(), named = data.keys.map((k, i) => i).filter((i) => i !== state.x && data.keys[i].values.length > 1 && !(metricOf().gain && data.keys[i].name === "case"));
      data.points.forEach((point, at) => {
        if (!chosen(point, Object.keys(state.only))) return;
        if (!groupsOf(metricOf()).some((group) => data.measured[state.metric][group][at])) return;
        const name = named.map((i) => data.keys[i].named[point.at[i]]).join(", ");
        if (!found.has(name)) found.set(name, []);
        found.get(name).push(at);
      });
      if (state.x >= 0) for (const places of found.values()) places.sort((a, b) => data.points[a].at[state.x] - data.points[b].at[state.x]);
      return found;
    }

    // Which curves are drawn at first: those that differ from the first one in one key alone, of which most have values. Of two keys that
    // differ at once nobody could tell which of them makes the difference.
    function shownFirst(all) {
      if (all.size <= MOST_CURVES + 1) return new Set(all.keys());
      const curves = [...all], at = ([, places], i) => data.points[places[0]].at[i];
      const named = data.keys.map((_, i) => i).filter((i) => i !== state.x && !(metricOf().gain && data.keys[i].name === "case"));
      const along = (key) => curves.filter((curve) => named.every((i) => i === key || at(curve, i) === at(curves[0], i))).map(([name]) => name);
      const [key, names] = named.map((i) => [i, along(i)]).sort((a, b) => b[1].length - a[1].length)[0];
      return new Set(names.length < 2 ? first([...all.keys()]) : numeric(data.keys[key]) ? first(names) : names.slice(0, MOST_CASES));
    }

    // What is drawn, above it: along an axis it would be cut.
    function headed(shown, words) {
      const whole = plain(words), long = whole.length * 7.4 > place.clientWidth - 60;
      shown.title = { text: long ? folded(whole) : whole, font: { size: 14 }, x: 0, xanchor: "left", xref: "container", y: 1, yanchor: "top", pad: { t: long ? 26 : 10, l: 8 } };
      shown.margin.t = long ? 62 : 46;
    }

    const draw = () => (state.kind === "map" ? drawMap() : drawLines());

    function drawMap() {
      const metric = metricOf(), [i, j] = mapped, x = data.keys[i], y = data.keys[j];
      const group = groupsOf(metric)[0], per = data.measured[metric.name][group], goals = data.expected[metric.name]?.[group] || [];
      const grid = () => y.values.map(() => x.values.map(() => null));
      const z = grid(), words = grid(), hover = grid(), places = [];
      const rounded = (v) => (metric.gain ? `${Math.round(v) > 0 ? "+" : ""}${Math.round(v) || 0}` : text(v, 2));
      data.points.forEach((point, at) => {
        const cell = per[at];
        if (!cell || !chosen(point, others())) return;
        const goal = goals[at] && goals[at][0] !== null ? goals[at] : null;
        places.push(at);
        z[point.at[j]][point.at[i]] = cell[0];
        words[point.at[j]][point.at[i]] = `<b>${rounded(cell[0])}</b>${goal ? `<br>${rounded(goal[0])}` : ""}`;
        hover[point.at[j]][point.at[i]] = `here ${text(cell[0], 3)}${cell[1] ? " ± " + text(cell[1], 2) : ""}, ${cell[2]} seed${cell[2] === 1 ? "" : "s"}${goal ? `<br>published ${text(goal[0], 3)}` : ""}`;
      });
      const values = z.flat().filter((v) => v !== null), published = goals.some((g, at) => g && g[0] !== null && places.includes(at));
      // In the colour of the algorithm that does better. A gain of a hundred percent and more has one colour.
      const colours = metric.gain
        ? { zmin: -100, zmax: 100, colorscale: [[0, metric.sides[0][1]], [0.5, "#ffffff"], [1, metric.sides[1][1]]] }
        : { zmin: Math.min(...values), zmax: Math.max(...values), colorscale: [[0, "#ffffff"], [1, "#404040"]] };
      const key = (metric.sides || []).map(([name, colour]) => ({ type: "scatter", mode: "markers", name: `${plain(name)} does better`, x: [null], y: [null], marker: { color: colour, symbol: "square", size: 12 } }));
      const trace = { type: "heatmap", x: x.words.map(plain), y: y.words.map(plain), z, text: words, texttemplate: "%{text}", textfont: { size: place.clientWidth < 480 ? 10 : 13 }, customdata: hover, xgap: 2, ygap: 2, hoverongaps: false,
        hovertemplate: `${plain(x.label)} %{x}, ${plain(y.label)} %{y}<br>%{customdata}<extra></extra>`, showscale: !metric.gain, colorbar: { thickness: 12 }, ...colours };
      const shown = layout(plain(x.label), plain(y.label), { type: "category" });
      shown.yaxis = { ...shown.yaxis, type: "category", rangemode: "normal" };
      shown.hovermode = "closest";
      const rows = Math.max(34, Math.min(44, 420 / y.values.length)) * y.values.length;
      shown.height = 130 + rows + (metric.gain ? 40 : 0);
      if (metric.gain) { shown.margin.b = 84; shown.legend.y = -70 / rows; }
      const at = others().map((n) => data.keys[n].named[Number(state.only[n])]);
      headed(shown, [wordsOf(metric, places), ...at].join(", ") + (published ? "; below: published" : ""));
      Plotly.react(place, [trace, ...key], shown, SETTINGS);
      place.setAttribute("aria-label", `${data.title}: ${metric.label}, a map of ${places.length} cells over ${x.label} and ${y.label}. The numbers are in the table below.`);
      table(metric, new Map([["", places]]), [group]);
    }

    // Names that do not fit below an axis stand beside it, one below the other.
    function lie(traces, shown, names) {
      for (const t of traces) {
        [t.x, t.y] = [t.y, t.x];
        if (t.error_y) { t.error_x = t.error_y; delete t.error_y; }
      }
      const values = { ...shown.yaxis, automargin: true };
      shown.yaxis = { ...shown.xaxis, categoryorder: "array", categoryarray: [...names].reverse(), automargin: true, title: { text: "" } };
      shown.xaxis = values;
      shown.hovermode = "y unified";
    }

    function drawLines() {
      const metric = metricOf(), key = state.x >= 0 ? data.keys[state.x] : null;
      const category = !key || !numeric(key) || key.crowded;
      const xOf = (at) => (key ? (category ? plain(key.words[data.points[at].at[state.x]]) : key.values[data.points[at].at[state.x]]) : "all");
      const per = data.measured[metric.name], expected = data.expected[metric.name] || {};
      const has = { values: false, bands: false }, traces = [], curves = [], groups = groupsOf(metric), every = lines(), firsts = shownFirst(every);
      const all = every.size > MOST_NAMES ? new Map([...every].filter(([line]) => firsts.has(line))) : every;
      // A curve has its algorithm's colour if it is the only one of it, else one of no algorithm.
      const ofAlgorithm = (group, places) => { const found = new Set(places.map((at) => data.colours[group][at])); return found.size === 1 ? [...found][0] : null; };
      const used = groups.flatMap((group) => [...all.values()].map((places) => ofAlgorithm(group, places))).filter(Boolean);
      let colour = 0, others = 0;
      for (const group of groups) {
        const who = data.groups.find((g) => g.group === group);
        for (const [line, places] of all) {
          const cells = places.map((at) => per[group][at]);
          if (!cells.some(Boolean)) continue;
          const own = ofAlgorithm(group, places), mark = MARKS[colour % MARKS.length];
          const ink = own && used.filter((c) => c === own).length === 1 ? seen(own) : lineColour(others++);
          // Of names along the axis each has its algorithm's, where they are of several.
          const inks = category && !own && places.every((at) => data.colours[group][at]) ? places.map((at) => seen(data.colours[group][at])) : ink;
          colour += 1;
          const name = [groups.length > 1 && who ? nameOf(group, places) : "", line].filter(Boolean).join(", ") || "measured here";
          curves.push(name);
          const goals = places.map((at) => expected[group]?.[at] || null);
          const said = metric.modelled && group === "0" ? Object.entries(data.models).map(([model, shares]) => [model, places.map((at) => shares[at])]).filter(([, shares]) => shares.some((s) => s !== null)) : [];
          const common = { legendgroup: name, x: places.map(xOf), visible: firsts.has(line) ? true : "legendonly" };
          // What one hover tells at its place: measured, published, models.
          const told = cells.map((c, n) => [c ? `${text(c[0], 4)}${c[1] ? " ± " + text(c[1], 2) : ""} (${c[2]} seed${c[2] === 1 ? "" : "s"})` : "–",
            ...(goals[n] ? [`${goals[n][0] === null ? "its claim allows" : "published"} ${goalWords(goals[n], 4)}`] : []), ...said.filter(([, shares]) => shares[n] !== null).map(([model, shares]) => `${model} ${text(shares[n], 3)}`)].join(", "));
          if (goals.some(Boolean)) {
            // What a claim allows is a broad pale band, behind a mark where it has a value; only the interval of what was measured is an error bar.
            const middle = goals.map((g) => (g ? g[0] ?? (g[1] + g[2]) / 2 : null));
            traces.push({ ...common, name: plain(`${name}: published`), showlegend: false, y: middle, mode: "markers", hoverinfo: "skip",
              marker: { color: inks, symbol: `${mark}-open`, size: 13, line: { width: 1.8 }, opacity: goals.map((g) => (g && g[0] === null ? 0 : 1)) },
              error_y: { type: "data", symmetric: false, array: goals.map((g, n) => (g && g[2] !== null ? Math.min(g[2], metric.most ?? Infinity) - middle[n] : 0)), arrayminus: goals.map((g, n) => (g && g[1] !== null ? middle[n] - (metric.gain ? g[1] : Math.max(g[1], 0)) : 0)), color: faded(inks === ink ? ink : style("--bb-quiet")), thickness: 12, width: 0 } });
            has.values ||= goals.some((g) => g && g[0] !== null);
            has.bands ||= goals.some((g) => g && g[1] !== null);
          }
          traces.push({ ...common, name: plain(name), y: cells.map((c) => (c ? c[0] : null)), mode: category ? "markers" : "lines+markers",
            line: { color: ink, width: 2 }, marker: { color: inks, symbol: mark, size: 8 },
            error_y: { type: "data", symmetric: false, array: cells.map((c) => (c && Math.max(0, Math.min(c[1] || 0, (metric.most ?? Infinity) - c[0]))) || 0), arrayminus: cells.map((c) => (c && Math.min(c[1] || 0, Math.max(c[0], 0))) || 0), color: inks === ink ? ink : style("--bb-quiet"), thickness: 1.4, width: 4 },
            text: told, hovertemplate: "%{text}" });
          for (const [model, shares] of said) {
            traces.push({ ...common, legendgroup: "models", visible: firsts.has(line) ? "legendonly" : false, name: plain(`${name}: ${data.model_labels[model]}`), y: shares, connectgaps: false, mode: category ? "markers" : "lines+markers",
              line: { color: ink, width: 1.4, dash: DASHES[model][0] }, marker: { color: ink, symbol: "x-thin-open", size: category ? 9 : 5 }, showlegend: false, hoverinfo: "skip" });
          }
        }
      }
      // One name for what is published, and one for all models, so that a click shows them.
      const quiet = style("--bb-quiet"), from = traces[0] ? traces[0].x[0] : null;
      if (has.values) {
        traces.push({ x: [from], y: [null], name: "published", mode: "markers", hoverinfo: "skip", marker: { color: quiet, symbol: "circle-open", size: 12, line: { width: 1.8 } } });
      }
      if (has.bands) {
        traces.push({ x: [from], y: [null], name: "what its claim allows", mode: "markers", hoverinfo: "skip", marker: { color: faded(quiet), symbol: "square", size: 12 } });
      }
      if (traces.some((t) => t.legendgroup === "models")) {
        traces.push({ x: [from], y: [null], name: `models: ${Object.entries(data.model_labels).map(([model, label]) => `${plain(label.split(",")[0])} ${DASHES[model][1]}`).join(", ")}`, legendgroup: "models", visible: "legendonly", hoverinfo: "skip", mode: "lines", line: { color: quiet, width: 1.4, dash: "dash" } });
      }
      const values = key && !category ? key.values : [];
      const log = values.length > 2 && values[0] > 0 && values[values.length - 1] / values[0] >= 8;
      const wordAt = (v) => key.words[values.indexOf(v)], apart = values.length ? readable(values, log, wordAt, (place.clientWidth || 700) - 90) : [];
      const ticks = category ? { type: "category" } : values.length ? { ...(log ? { type: "log" } : {}), ...(log || values.length < 20 ? { tickvals: apart, ticktext: apart.map(wordAt), tickangle: 0 } : {}) } : {};
      const shown = layout(key && key.name !== "case" ? plain(key.label) : "", "", ticks);
      headed(shown, wordsOf(metric, [...all.values()].flat()) + (all.size < every.size ? ` (${all.size} of ${every.size} curves)` : ""));
      shown.hovermode = "x unified";
      const names = category && key ? [...new Set(all.size ? [...all.values()].flat().map(xOf) : [])] : [];
      const lying = names.some((word) => 7.6 * word.length + 12 > ((place.clientWidth || 700) - 90) / names.length);
      if (lying) lie(traces, shown, names);
      // Names that do not fit in one row stand in columns of the widest one's width.
      const room = Math.max((place.clientWidth || 700) - 40, 200), widths = traces.filter((t) => t.showlegend !== false).map((t) => 62 + 7.6 * t.name.length);
      const inOneRow = widths.reduce((sum, w) => sum + w, 0) <= room;
      const legendRows = inOneRow ? 1 : Math.ceil(widths.length / Math.max(1, Math.floor(room / Math.max(...widths))));
      const under = 31 * legendRows;
      shown.margin.b = 68;
      shown.height = (lying ? 140 + 30 * names.length : 350) + under;
      shown.legend.y = -68 / (shown.height - under - shown.margin.t - 68);
      Plotly.react(place, traces, shown, SETTINGS);
      const most = 10, named = curves.slice(0, most).join("; ") + (curves.length > most ? `; and ${curves.length - most} more` : "");
      place.setAttribute("aria-label", `${data.title}: ${metric.label}${key ? ` over ${key.label}` : ""}. ${curves.length} ${curves.length === 1 ? "curve" : "curves"}: ${named}. The numbers are in the table below.`);
      table(metric, all, groups);
    }

    function table(metric, all, groups) {
      const body = figure.querySelector(".bb-numbers tbody"), head = figure.querySelector(".bb-numbers thead tr");
      const models = metric.modelled ? Object.keys(data.models) : [];
      const names = [...data.keys.map((k) => k.label), "flows", metric.label, "95 % ±", "seeds", "expected", ...models.map((m) => data.model_labels[m])];
      head.replaceChildren(...names.map((n) => { const cell = element("th", n); cell.scope = "col"; return cell; }));
      const rows = [], shown = new Set([...all.values()].flat());
      data.points.forEach((point, at) => {
        if (!shown.has(at)) return;
        for (const group of groups) {
          const cell = data.measured[metric.name][group][at];
          if (!cell) continue;
          const goal = data.expected[metric.name]?.[group]?.[at];
          const who = data.groups.find((g) => g.group === group);
          const row = element("tr");
          const cells = [...data.keys.map((k, i) => k.words[point.at[i]]), who && !metric.gain ? nameOf(group, [at]) : "all", text(cell[0]), cell[1] === null ? "–" : text(Number(cell[1].toPrecision(2))), cell[2], goal ? goalWords(goal) : "–",
            ...models.map((m) => (group === "0" && data.models[m][at] !== null ? text(Number(data.models[m][at].toPrecision(4))) : "–"))];
          row.append(...cells.map((c) => element("td", c)));
          rows.push(row);
        }
      });
      body.replaceChildren(...rows);
    }

    build();
    draw();
    new MutationObserver(draw).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
  }

  // Points of two numbers each, one beside the other: published and measured or modelled. On the line they are equal.
  function scatter(figure) {
    const data = JSON.parse(document.getElementById(figure.dataset.scatter).textContent), place = figure.querySelector(".bb-plot");
    const draw = () => {
      const shown = layout(plain(data.x), plain(data.y), {});
      const traces = data.series.map((series, n) => ({ legendrank: n, type: "scatter", mode: "markers", name: plain(series.name), visible: n < 2 ? true : "legendonly", x: series.x, y: series.y, text: series.at.map(plain),
        marker: { color: n ? lineColour(n - 1) : style("--bb-quiet"), symbol: MARKS[n % MARKS.length], size: 7, opacity: 0.75 }, hovertemplate: "%{text}<br>published %{x:.3g}, here %{y:.3g}<extra>%{fullData.name}</extra>" })).reverse();
      shown.hovermode = "closest";
      shown.height = 520;
      shown.xaxis.range = shown.yaxis.range = [0, 1];
      shown.shapes = [{ type: "line", x0: 0, y0: 0, x1: 1, y1: 1, line: { color: style("--bb-quiet"), width: 1, dash: "dot" } }];
      shown.legend.y = -0.16;
      Plotly.react(place, traces, shown, SETTINGS);
    };
    draw();
    new MutationObserver(draw).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
  }

  function series(figure) {
    const data = JSON.parse(document.getElementById(figure.dataset.series).textContent);
    const place = figure.querySelector(".bb-plot");
    const draw = () => {
      const shown = layout(data.xlabel || "virtual time (s)", "", {});
      shown.height = 60 + 190 * data.panels.length;
      shown.grid = { rows: data.panels.length, columns: 1, roworder: "top to bottom" };
      shown.hovermode = "x";
      const part = 1 / data.panels.length, traces = [];
      delete shown.yaxis;
      shown.annotations = [];
      data.panels.forEach((panel, i) => {
        const axis = i ? `y${i + 1}` : "y", top = 1 - i * part;
        shown[i ? `yaxis${i + 1}` : "yaxis"] = { ...layout("", panel.states ? "" : panel.label, {}).yaxis, domain: [top - part * 0.86, top], rangemode: panel.states ? "normal" : "tozero",
          ...(panel.states ? { type: "category", categoryorder: "array", categoryarray: [...panel.states].reverse() } : {}) };
        // The names of states leave no room beside the axis.
        if (panel.states) shown.annotations.push({ xref: "paper", yref: "paper", x: 0, y: top, xanchor: "left", yanchor: "bottom", showarrow: false, text: plain(panel.label), font: { size: 14 } });
        panel.lines.forEach((line, n) => traces.push({ type: "scatter", mode: "lines", name: plain(line.name), legendgroup: line.name, showlegend: line.legend === true, yaxis: axis,
          x: line.x, y: line.y, line: { color: line.colour ? seen(line.colour) : lineColour(n), width: panel.states ? 5 : 1.2, dash: line.dash || "solid", shape: panel.states ? "hv" : "linear" },
          connectgaps: false, hovertemplate: panel.states ? "%{y}" : "%{y:.4g}" }));
      });
      shown.xaxis.anchor = `y${data.panels.length > 1 ? data.panels.length : ""}`;
      shown.legend = { orientation: "h", y: 1.02, yanchor: "bottom", x: 0, font: { size: 14 } };
      shown.margin.t = 40;
      shown.margin.l = 84;
      const end = Math.max(...data.panels.flatMap((panel) => panel.lines.map((line) => line.x[line.x.length - 1] || 0)));
      const begin = Math.min(end, ...data.panels.flatMap((panel) => panel.lines.map((line) => line.x[0] ?? end)));
      const [from_s, to_s] = data.window_s || [begin, end];
      shown.shapes = [[begin, from_s], [to_s, end]].filter(([from, to]) => to > from).map(([x0, x1]) => (
        { type: "rect", xref: "x", yref: "paper", x0, x1, y0: 0, y1: 1, line: { width: 0 }, fillcolor: style("--bb-quiet"), opacity: 0.1, layer: "below" }));
      Plotly.react(place, traces, shown, SETTINGS);
    };
    draw();
    new MutationObserver(draw).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
  }

  // A list of statements: those whose paper, verdict and cause are chosen and that have all words of a search.
  function filter(form) {
    const rows = [...document.getElementById(form.dataset.list).querySelectorAll("[data-words]")], count = form.querySelector("output");
    const apply = () => {
      const fields = [...form.querySelectorAll("select")].filter((field) => field.value), words = form.querySelector("input").value.toLowerCase().split(/\s+/).filter(Boolean);
      for (const row of rows) {
        row.hidden = !fields.every((field) => row.dataset[field.name] === field.value) || !words.every((word) => row.dataset.words.includes(word));
      }
      count.textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length}`;
    };
    form.addEventListener("input", apply);
    form.addEventListener("submit", (event) => event.preventDefault());
    apply();
  }

  // What an address points to is opened, so that links to a statement hold.
  function unfold() {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    for (let e = target; e; e = e.parentElement) if (e.tagName === "DETAILS") e.open = true;
    target.scrollIntoView();
  }

  function start() {
    document.querySelectorAll("form.bb-filter").forEach(filter);
    unfold();
    window.addEventListener("hashchange", unfold);
    // A chart is drawn when it comes near the window; before printing all are.
    const kinds = { chart, series, scatter }, waiting = new Set(document.querySelectorAll("[data-chart], [data-series], [data-scatter]"));
    const drawn = (figure) => { if (waiting.delete(figure)) kinds[Object.keys(kinds).find((kind) => figure.dataset[kind])](figure); };
    const watch = new IntersectionObserver((entries) => entries.filter((e) => e.isIntersecting).forEach((e) => drawn(e.target)), { rootMargin: "600px" });
    waiting.forEach((figure) => watch.observe(figure));
    window.addEventListener("beforeprint", () => { [...waiting].forEach(drawn); document.querySelectorAll("details.bb-statement").forEach((d) => { d.open = true; }); });
  }
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start); else start();
})();
