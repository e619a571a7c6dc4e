// Charts that a reader hovers, zooms and filters, and lists filtered by verdict. Reads what the page embeds; loads nothing.
"use strict";
(() => {
  const LINES = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C6BB1", "#7F7F7F", "#A6761D", "#1B9E77"];
  const MARKS = ["circle", "square", "diamond", "triangle-up", "triangle-down", "pentagon", "star", "cross"];
  const MODELS = { ware: "Ware, steady state", fluid: "fluid, as long as the runs", burst: "burst" };
  const MODEL_DASHES = { ware: "dash", fluid: "dot", burst: "dashdot" };
  const SHARE = "share_of_capacity";
  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const dark = () => document.documentElement.dataset.theme === "dark";
  const brighter = { "#0072B2": "#4DA8E0", "#D55E00": "#FF8A3D", "#009E73": "#2FC79A", "#000000": "#FFFFFF", "#666666": "#AAAAAA", "#7F7F7F": "#B0B0B0" };
  const seen = (colour) => (dark() && brighter[colour]) || colour;
  const text = (value, digits = 6) => (typeof value === "number" ? String(Number(value.toPrecision(digits))) : String(value));
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
    const axis = { gridcolor: grid, linecolor: grid, zeroline: false, automargin: true, title: { font: { size: 13 } } };
    return {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { color: ink, size: 12, family: "inherit" },
      margin: { l: 56, r: 12, t: 12, b: 44 }, hovermode: "closest", dragmode: window.innerWidth < 700 ? "pan" : "zoom",
      xaxis: { ...axis, ...logs, title: { text: xtitle, ...axis.title } }, yaxis: { ...axis, title: { text: folded(ytitle), ...axis.title }, rangemode: "tozero" },
      legend: { orientation: "h", y: -0.2, yanchor: "top", x: 0, font: { size: 11 } },
      hoverlabel: { bgcolor: style("--pst-color-surface") || grid, font: { color: ink } },
    };
  }
  const SETTINGS = { responsive: true, displaylogo: false, displayModeBar: false, scrollZoom: false, doubleClick: "reset" };

  function chart(figure) {
    const data = JSON.parse(document.getElementById(figure.dataset.chart).textContent);
    const place = figure.querySelector(".bb-plot"), controls = figure.querySelector(".bb-controls");
    if (!data.metrics.length || !data.points.length) { place.textContent = "No good run has a number here."; return; }
    const numeric = (key) => key.values.every((v) => typeof v === "number");
    const xs = data.keys.map((key, i) => i);
    const best = xs.filter((i) => numeric(data.keys[i])).sort((a, b) => data.keys[b].values.length - data.keys[a].values.length)[0];
    const state = { metric: data.metrics[0].name, x: best ?? (xs.length ? 0 : -1), group: "", only: {} };
    const many = data.keys.filter((_, i) => i !== state.x).reduce((n, k) => n * k.values.length, 1);
    if (data.groups.length > 1 && many > 3) state.group = data.groups[0].group;

    function build() {
      const active = document.activeElement, index = [...controls.querySelectorAll("select")].indexOf(active);
      controls.replaceChildren();
      const set = (name) => (value) => { state[name] = value; build(); draw(); };
      choice(controls, "Metric", data.metrics.map((m) => ({ value: m.name, name: m.label, group: m.asked ? "what claims read" : "others" })), state.metric, set("metric"));
      if (data.keys.length > 1) {
        choice(controls, "Along", data.keys.map((k, i) => ({ value: String(i), name: k.label })), String(state.x), (v) => { state.x = Number(v); state.only = {}; build(); draw(); });
      }
      const whole = data.metrics.find((m) => m.name === state.metric).run;
      if (data.groups.length > 1 && !whole) {
        choice(controls, "Flows", [{ value: "", name: "all" }, ...data.groups.map((g) => ({ value: g.group, name: g.label }))], state.group, set("group"));
      }
      data.keys.forEach((key, i) => {
        if (i === state.x || key.values.length < 2) return;
        choice(controls, key.label, [{ value: "", name: "all" }, ...key.values.map((v, j) => ({ value: String(j), name: text(v) }))],
          state.only[i] ?? "", (v) => { state.only[i] = v; draw(); });
      });
      if (index >= 0) controls.querySelectorAll("select")[index]?.focus();
    }

    function lines() {
      const found = new Map();
      data.points.forEach((point, at) => {
        if (Object.entries(state.only).some(([i, v]) => v !== "" && point.at[i] !== Number(v))) return;
        const name = data.keys.map((k, i) => (i === state.x || k.values.length < 2 ? null : `${k.label} = ${text(k.values[point.at[i]], 4)}`)).filter(Boolean).join(", ");
        if (!found.has(name)) found.set(name, []);
        found.get(name).push(at);
      });
      if (state.x >= 0) for (const places of found.values()) places.sort((a, b) => data.points[a].at[state.x] - data.points[b].at[state.x]);
      return found;
    }

    function draw() {
      const metric = data.metrics.find((m) => m.name === state.metric);
      const key = state.x >= 0 ? data.keys[state.x] : null;
      const category = !key || !numeric(key);
      const xOf = (at) => (key ? (category ? plain(key.values[data.points[at].at[state.x]]) : key.values[data.points[at].at[state.x]]) : "all");
      const per = data.measured[metric.name], expected = data.expected[metric.name] || {};
      const curves = [], traces = [], groups = Object.keys(per).filter((g) => g === "run" || !state.group || g === state.group), all = lines();
      let colour = 0;
      for (const group of groups) {
        const who = data.groups.find((g) => g.group === group);
        let n = -1;
        for (const [line, places] of all) {
          n += 1;
          const cells = places.map((at) => per[group][at]);
          if (!cells.some(Boolean)) continue;
          const ink = seen(all.size === 1 && who && who.colour ? who.colour : LINES[colour % LINES.length]);
          const mark = MARKS[colour % MARKS.length];
          colour += 1;
          const name = [groups.length > 1 && who ? who.label : "", line].filter(Boolean).join(", ") || "measured here";
          curves.push(name);
          const common = { legendgroup: name, x: places.map(xOf), mode: "lines+markers" };
          traces.push({ ...common, name: plain(name), y: cells.map((c) => (c ? c[0] : null)), mode: category ? "markers" : "lines+markers",
            line: { color: ink, width: 1.8 }, marker: { color: ink, symbol: mark, size: 8 },
            error_y: { type: "data", array: cells.map((c) => (c && c[1]) || 0), color: ink, thickness: 1.2, width: 3 },
            text: cells.map((c) => (c ? `${text(c[0])}${c[1] ? " ± " + text(c[1]) : ""}, ${c[2]} seed${c[2] === 1 ? "" : "s"}` : "")),
            hovertemplate: `%{x}: %{text}<extra>${plain(name)}</extra>` });
          const goals = places.map((at) => (expected[group] ? expected[group][at] : null));
          if (goals.some(Boolean)) {
            traces.push({ ...common, legendgroup: "expected", name: plain(`${name}: expected`), showlegend: false, y: goals.map((g) => (g ? g[0] : null)), mode: "markers",
              marker: { color: ink, symbol: `${mark}-open`, size: 12, line: { width: 1.6 } },
              error_y: { type: "data", symmetric: false, array: goals.map((g) => (g && g[2] !== null ? g[2] - g[0] : 0)), arrayminus: goals.map((g) => (g && g[1] !== null ? g[0] - g[1] : 0)), color: ink, thickness: 0.8, width: 6 },
              text: goals.map((g) => (g ? `${text(g[0])} (${plain(g[3])})` : "")), hovertemplate: `%{x}: expected %{text}<extra>${plain(name)}</extra>` });
          }
          if (metric.name === SHARE && group === "0") {
            for (const [model, shares] of Object.entries(data.models)) {
              const said = places.map((at) => shares[at]);
              if (!said.some((s) => s !== null)) continue;
              traces.push({ ...common, legendgroup: model, name: plain(`${name}: ${MODELS[model]}`), y: said, connectgaps: false, mode: category ? "markers" : "lines+markers",
                line: { color: ink, width: 1.3, dash: MODEL_DASHES[model] }, marker: { color: ink, symbol: "x-thin-open", size: category ? 8 : 5 },
                showlegend: false, hovertemplate: `%{x}: %{y:.3f}<extra>${plain(MODELS[model])}</extra>` });
            }
          }
        }
      }
      // One name for all lines of a kind, so that a click hides the kind.
      const quiet = style("--bb-quiet"), first = traces[0] ? traces[0].x[0] : null;
      const kind = (group, name, more) => { if (traces.some((t) => t.legendgroup === group)) traces.push({ x: [first], y: [null], name, legendgroup: group, showlegend: true, hoverinfo: "skip", ...more }); };
      kind("expected", "what the claims expect, and their tolerance", { mode: "markers", marker: { color: quiet, symbol: "circle-open", size: 11, line: { width: 1.6 } } });
      for (const [model, name] of Object.entries(MODELS)) {
        kind(model, name, category ? { mode: "markers", marker: { color: quiet, symbol: "x-thin-open", size: 8 } } : { mode: "lines+markers", line: { color: quiet, width: 1.3, dash: MODEL_DASHES[model] }, marker: { color: quiet, symbol: "x-thin-open", size: 5 } });
      }
      const values = key && !category ? key.values : [];
      const log = values.length > 2 && values[0] > 0 && values[values.length - 1] / values[0] >= 8;
      const ticks = category ? { type: "category" } : log ? { type: "log", tickvals: values, ticktext: values.map((v) => text(v)) } : values.length < 12 ? { tickvals: values, ticktext: values.map((v) => text(v)) } : {};
      const shown = layout(key ? plain(key.label) : "", plain(metric.label), ticks);
      // Names that do not fit in one row stand in columns of the widest one's width.
      const room = Math.max((place.clientWidth || 700) - 40, 200), widths = traces.filter((t) => t.showlegend !== false).map((t) => 60 + 6.4 * t.name.length);
      const inOneRow = widths.reduce((sum, w) => sum + w, 0) <= room;
      const legendRows = inOneRow ? 1 : Math.ceil(widths.length / Math.max(1, Math.floor(room / Math.max(...widths))));
      shown.margin.b = 64;
      shown.height = 360 + 20 * Math.min(legendRows, 14);
      shown.legend.y = -64 / (shown.height - 20 * Math.min(legendRows, 14) - 76);
      Plotly.react(place, traces, shown, SETTINGS);
      const most = 10, named = curves.slice(0, most).join("; ") + (curves.length > most ? `; and ${curves.length - most} more` : "");
      place.setAttribute("aria-label", `${data.title}: ${metric.label}${key ? ` over ${key.label}` : ""}. ${curves.length} ${curves.length === 1 ? "curve" : "curves"}: ${named}. The numbers are in the table below.`);
      table(metric, all, groups);
    }

    function table(metric, all, groups) {
      const body = figure.querySelector(".bb-numbers tbody"), head = figure.querySelector(".bb-numbers thead tr");
      const models = metric.name === SHARE ? Object.keys(data.models) : [];
      const names = [...data.keys.map((k) => k.label), "flows", metric.label, "95 % ±", "seeds", "expected", ...models.map((m) => MODELS[m])];
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
          const cells = [...data.keys.map((k, i) => text(k.values[point.at[i]])), who ? who.label : "all", text(cell[0]), cell[1] === null ? "–" : text(Number(cell[1].toPrecision(2))), cell[2], goal ? text(goal[0]) : "–",
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

  function series(figure) {
    const data = JSON.parse(document.getElementById(figure.dataset.series).textContent);
    const place = figure.querySelector(".bb-plot");
    const draw = () => {
      const shown = layout("virtual time (s)", "", {});
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
        if (panel.states) shown.annotations.push({ xref: "paper", yref: "paper", x: 0, y: top, xanchor: "left", yanchor: "bottom", showarrow: false, text: plain(panel.label), font: { size: 13 } });
        panel.lines.forEach((line, n) => traces.push({ type: "scatter", mode: "lines", name: plain(line.name), legendgroup: line.name, showlegend: panel.legend === true, yaxis: axis,
          x: line.x, y: line.y, line: { color: seen(line.colour || LINES[n % LINES.length]), width: panel.states ? 5 : 1.2, dash: line.dash || "solid", shape: panel.states ? "hv" : "linear" },
          connectgaps: false, hovertemplate: panel.states ? "%{y}" : "%{y:.4g}" }));
      });
      shown.xaxis.anchor = `y${data.panels.length > 1 ? data.panels.length : ""}`;
      shown.legend = { orientation: "h", y: 1.02, yanchor: "bottom", x: 0, font: { size: 12 } };
      shown.margin.t = 40;
      shown.margin.l = 84;
      const end = Math.max(...data.panels.flatMap((panel) => panel.lines.map((line) => line.x[line.x.length - 1] || 0)));
      shown.shapes = [[0, data.window_s[0]], [data.window_s[1], end]].filter(([from, to]) => to > from).map(([x0, x1]) => (
        { type: "rect", xref: "x", yref: "paper", x0, x1, y0: 0, y1: 1, line: { width: 0 }, fillcolor: style("--bb-quiet"), opacity: 0.1, layer: "below" }));
      Plotly.react(place, traces, shown, SETTINGS);
    };
    draw();
    new MutationObserver(draw).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
  }

  function filter(group) {
    const table = group.parentElement.querySelector("table.bb-list");
    group.addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (!button) return;
      button.setAttribute("aria-pressed", String(button.getAttribute("aria-pressed") !== "true"));
      const wanted = [...group.querySelectorAll('[aria-pressed="true"]')].map((b) => b.dataset.verdict);
      for (const row of table.tBodies[0].rows) row.hidden = wanted.length > 0 && !wanted.includes(row.dataset.verdict);
    });
  }

  function start() {
    document.querySelectorAll(".bb-filter").forEach(filter);
    // A chart is drawn when it comes near the window; before printing all are.
    const waiting = new Set(document.querySelectorAll("[data-chart], [data-series]"));
    const drawn = (figure) => { if (waiting.delete(figure)) (figure.dataset.chart ? chart : series)(figure); };
    const watch = new IntersectionObserver((entries) => entries.filter((e) => e.isIntersecting).forEach((e) => drawn(e.target)), { rootMargin: "600px" });
    waiting.forEach((figure) => watch.observe(figure));
    window.addEventListener("beforeprint", () => [...waiting].forEach(drawn));
  }
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start); else start();
})();
