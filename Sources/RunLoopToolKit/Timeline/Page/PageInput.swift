// SPDX-License-Identifier: Apache-2.0

extension TimelinePage {
  /// Handles the mouse and the keyboard.
  static let input = #"""
    const shortest = 20;
    function show(begin, end) {
      let wide = Math.min(Math.max(end - begin, shortest), Math.max(span, shortest));
      begin = Math.max(0, Math.min(begin, span - wide));
      view.begin = begin;
      view.end = begin + wide;
      draw();
    }
    function zoom(factor, around) {
      const wide = Math.min(Math.max((view.end - view.begin) * factor, shortest), Math.max(span, shortest));
      const part = (around - view.begin) / (view.end - view.begin);
      show(around - part * wide, around - part * wide + wide);
    }
    const pan = part => show(view.begin + (view.end - view.begin) * part, view.end + (view.end - view.begin) * part);

    function select(item, isCentred) {
      selected = item;
      chain = null;
      if (item && isCentred) {
        const lane = lanes[item.lane], begin = lane.begin[item.index], end = lane.end[item.index];
        const wide = view.end - view.begin;
        if (begin < view.begin || begin > view.end || end - begin < wide / 400)
          show(begin - wide / 2, begin + wide / 2);
        if ((end - begin) / (view.end - view.begin) * width < 4) {
          const closer = Math.max(shortest, (end - begin) * 60);
          show(begin - closer / 2, begin + closer / 2);
        }
        layOut();
        if (lane.y < view.top + AXIS) view.top = lane.y - AXIS;
        if (lane.y + laneHeight(lane) > view.top + height) view.top = lane.y + laneHeight(lane) - height;
      }
      showDetail();
      draw();
    }

    function laneAt(y) {
      layOut();
      const at = y + view.top;
      return lanes.find(lane => at >= lane.y && at < lane.y + laneHeight(lane));
    }

    // Returns the bar under the mouse, or one within three pixels.
    function itemAt(x, y) {
      const lane = laneAt(y);
      if (!lane || x < labelWidth() || y < AXIS) return null;
      const row = Math.floor((y + view.top - lane.y - BAND - 3) / ROW);
      const time = timeOf(x), near = (view.end - view.begin) / Math.max(1, width - labelWidth()) * 3;
      let best = null, sleep = null, run = null, least = near;
      for (let i = firstAfter(lane, time + near) - 1, steps = 0; i >= 0 && steps < 4000; steps++) {
        const away = Math.max(lane.begin[i] - time, time - lane.end[i], 0);
        const kind = lane.kind[i];
        if (kind === SLEEP) { if (away === 0) sleep = i; }
        else if (kind === RUN || kind === HOST) { if (away === 0 && run === null) run = i; }
        else if (away < least || away === 0) {
          const isRow = Math.min(lane.level[i], lane.rows - 1) === Math.min(row, lane.rows - 1);
          if (isRow && (best === null || away < least)) { best = i; least = away; }
        }
        if (best !== null && least === 0) break;
        // Before an item that ended long ago, only enclosing items can extend to this time.
        i = lane.end[i] < time - near && lane.parent[i] >= 0 && steps > 200 ? lane.parent[i] : i - 1;
      }
      const isBand = row < 0;
      const index = isBand ? run : best !== null ? best : sleep !== null ? sleep : run;
      return index === null || index === undefined ? null : { lane: lane.number, index };
    }

    function showTip(item, x, y) {
      const tip = document.getElementById("tip");
      tip.hidden = !item;
      if (!item) return;
      const lane = lanes[item.lane], facts = fact(lane, item.index), where = place(lane.code[item.index]);
      const parts = [`<b>${escaped(title(lane, item.index))}</b> ${escaped(where)}`,
        kinds[lane.kind[item.index]] + " · " + (facts.isOpen ? "goes on" : duration(facts.took)) +
          (facts.delay !== null ? " · waited " + duration(facts.delay) : "") +
          (lane.count[item.index] > 1 ? " · " + count(lane.count[item.index]) + " of them" : "")];
      const e = causeOf.get(key(item.lane, item.index));
      if (e !== undefined)
        parts.push((edges.kind[e] === WAKE ? "woken by " : "from ") + escaped(edges.from[e] < 0 ? threadName(e)
          : title(lanes[edges.fromLane[e]], edges.from[e]) + " on " + lanes[edges.fromLane[e]].name));
      tip.innerHTML = parts.join("<br>");
      const box = tip.getBoundingClientRect();
      tip.style.left = Math.max(4, Math.min(x + 14, width - box.width - 8)) + "px";
      tip.style.top = (y + 18 + box.height > height ? Math.max(0, y - box.height - 10) : y + 18) + "px";
    }

    let drag = null;
    const at = event => {
      const box = chart.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    chart.addEventListener("pointerdown", event => {
      const [x, y] = at(event);
      drag = { x, y, begin: view.begin, end: view.end, top: view.top, hasMoved: false };
      chart.setPointerCapture(event.pointerId);
    });
    chart.addEventListener("pointermove", event => {
      const [x, y] = at(event);
      if (drag) {
        if (Math.abs(x - drag.x) + Math.abs(y - drag.y) > 4) drag.hasMoved = true;
        if (!drag.hasMoved) return;
        const time = (drag.x - x) / (width - labelWidth()) * (drag.end - drag.begin);
        view.top = drag.top + drag.y - y;
        show(drag.begin + time, drag.end + time);
        chart.style.cursor = "grabbing";
        return;
      }
      const item = itemAt(x, y);
      const isSame = hovered && item && hovered.lane === item.lane && hovered.index === item.index;
      if (!isSame && (hovered || item)) { hovered = item; draw(); }
      showTip(item, x, y);
      chart.style.cursor = item ? "pointer" : "default";
    });
    chart.addEventListener("pointerup", event => {
      const [x, y] = at(event);
      if (drag && !drag.hasMoved) select(itemAt(x, y), false);
      drag = null;
      chart.style.cursor = "default";
    });
    chart.addEventListener("pointerleave", () => { hovered = null; showTip(null); draw(); });
    chart.addEventListener("dblclick", () => { if (selected) zoomToSelected(); });
    chart.addEventListener("wheel", event => {
      event.preventDefault();
      const [x] = at(event), step = event.deltaMode === 1 ? 16 : 1;
      if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY))
        pan((event.deltaX || event.deltaY) * step / width);
      else if (event.altKey) { view.top += event.deltaY * step; draw(); }
      else zoom(Math.exp(event.deltaY * step * 0.0022), timeOf(Math.max(labelWidth(), x)));
    }, { passive: false });

    function minimapTo(event) {
      const box = minimap.getBoundingClientRect(), time = (event.clientX - box.left) / box.width * span;
      const wide = view.end - view.begin;
      show(time - wide / 2, time + wide / 2);
    }
    minimap.addEventListener("pointerdown", event => { minimap.setPointerCapture(event.pointerId); minimapTo(event); });
    minimap.addEventListener("pointermove", event => { if (event.buttons) minimapTo(event); });

    function zoomToSelected() {
      const lane = lanes[selected.lane], begin = lane.begin[selected.index], end = lane.end[selected.index];
      const room = Math.max((end - begin) * 0.2, shortest);
      show(begin - room, end + room);
    }

    // Selects the next bar of the lane, or the first visible one.
    function step(way) {
      if (!selected) {
        for (const lane of lanes)
          for (let i = firstAfter(lane, view.begin); i < lane.begin.length; i++)
            if (isCallOut(lane, i)) return select({ lane: lane.number, index: i }, true);
        return;
      }
      const lane = lanes[selected.lane];
      for (let i = selected.index + way; i >= 0 && i < lane.begin.length; i += way)
        if (isCallOut(lane, i) && matches(lane, i)) return select({ lane: lane.number, index: i }, true);
    }

    function stepLane(way) {
      if (!selected) return step(1);
      const time = lanes[selected.lane].begin[selected.index];
      for (let n = selected.lane + way; n >= 0 && n < lanes.length; n += way) {
        const lane = lanes[n];
        if (!lane.begin.length) continue;
        return select({ lane: n, index: Math.min(lane.begin.length - 1, firstAfter(lane, time)) }, true);
      }
    }

    let lastHang = -1;
    function nextHang() {
      if (!hangs.length) return;
      lastHang = (lastHang + 1) % hangs.length;
      select(hangs[lastHang], true);
      zoomToSelected();
    }

    function toCause() {
      const e = selected && causeOf.get(key(selected.lane, selected.index));
      if (e !== undefined && e !== null && edges.from[e] >= 0)
        select({ lane: edges.fromLane[e], index: edges.from[e] }, true);
    }
    function toEffect() {
      const e = selected && (effectsOf.get(key(selected.lane, selected.index)) || [])[0];
      if (e !== undefined && e !== null) select({ lane: edges.toLane[e], index: edges.to[e] }, true);
    }

    const keyHelp = [["← → or a d", "move"], ["+ − or w s", "zoom"], ["0", "the whole span"],
      ["n p", "the next and the former bar"], ["j k", "the next and the former thread"], ["c", "to the cause"],
      ["e", "to the first effect"], ["z", "zoom to what is selected"], ["h", "the next hang"], ["/", "find"],
      ["Page Up, Page Down", "up and down among the threads"], ["t", "light or dark"], ["Esc", "select nothing"]];
    const actions = {
      ArrowLeft: () => pan(-0.2), a: () => pan(-0.2), ArrowRight: () => pan(0.2), d: () => pan(0.2),
      "+": () => zoom(0.6, middle()), "=": () => zoom(0.6, middle()), w: () => zoom(0.6, middle()),
      ArrowUp: () => zoom(0.6, middle()), "-": () => zoom(1.6, middle()), s: () => zoom(1.6, middle()),
      ArrowDown: () => zoom(1.6, middle()),
      0: () => show(0, span), Home: () => show(0, span), n: () => step(1), p: () => step(-1), j: () => stepLane(1),
      k: () => stepLane(-1), c: toCause, e: toEffect, z: () => selected && zoomToSelected(), h: nextHang,
      t: () => toggleTheme(), "/": () => document.getElementById("search").focus(),
      "?": () => document.getElementById("keys").showModal(),
      PageDown: () => { view.top += height / 2; draw(); }, PageUp: () => { view.top -= height / 2; draw(); },
      Escape: () => { chosenSite = -1; showSites(); select(null, false); },
    };
    function middle() {
      if (!selected) return (view.begin + view.end) / 2;
      const lane = lanes[selected.lane], begin = lane.begin[selected.index];
      return begin >= view.begin && begin <= view.end ? begin : (view.begin + view.end) / 2;
    }
    document.addEventListener("keydown", event => {
      const isTyping = event.target.tagName === "INPUT";
      if (isTyping && event.key === "Escape") return chart.focus();
      if (isTyping && event.key === "Enter") { step(1); return; }
      if (isTyping || event.ctrlKey || event.metaKey || event.altKey || document.getElementById("keys").open) return;
      const action = actions[event.key];
      if (!action) return;
      event.preventDefault();
      action();
    });

    document.getElementById("search").addEventListener("input", event => {
      found = event.target.value.trim().toLowerCase();
      showSites();
      draw();
    });
    document.getElementById("detail").addEventListener("click", event => {
      const button = event.target.closest("button[data-lane]");
      if (button) select({ lane: +button.dataset.lane, index: +button.dataset.index }, true);
    });
    const sitesPanel = document.getElementById("sites");
    sitesPanel.addEventListener("click", event => {
      const head = event.target.closest("[data-column]"), row = event.target.closest("[data-site]");
      if (head) {
        const by = head.dataset.column;
        order = { by, isUp: order.by === by ? !order.isUp : by === "name" };
        showSites();
      } else if (row) chooseSite(+row.dataset.site);
    });
    sitesPanel.addEventListener("keydown", event => {
      const row = event.target.closest("[data-site]");
      if (!row || event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      event.stopPropagation();
      chooseSite(+row.dataset.site);
    });
    document.getElementById("fit").onclick = () => show(0, span);
    document.getElementById("hang").onclick = nextHang;
    document.getElementById("help").onclick = () => document.getElementById("keys").showModal();

    function toggleTheme() {
      const root = document.documentElement;
      root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
      readColours();
      draw();
    }
    document.getElementById("theme").onclick = toggleTheme;

    function swatch(colour, text) {
      return `<span><span class="dot" style="background:var(--${colour})"></span>${text}</span>`;
    }

    function start() {
      const prefersDark = matchMedia("(prefers-color-scheme: dark)");
      document.documentElement.dataset.theme = prefersDark.matches ? "dark" : "light";
      prefersDark.addEventListener("change", event => {
        document.documentElement.dataset.theme = event.matches ? "dark" : "light";
        readColours();
        draw();
      });
      readColours();
      const callOuts = lanes.reduce((sum, lane) => sum + lane.begin.length, 0);
      document.getElementById("title").textContent = trace.name + " (" + trace.process + ")";
      document.getElementById("facts").textContent =
        `${duration(span)} · ${lanes.length} ${lanes.length === 1 ? "loop" : "loops"} · ${count(callOuts)} records · ` +
        `${hangs.length} ${hangs.length === 1 ? "hang" : "hangs"}`;
      const said = [];
      if (trace.lost) said.push(count(trace.lost) + " records were overwritten before they could be read");
      if (trace.torn) said.push(count(trace.torn) + " records contradict themselves and are left out");
      if (trace.lostCauses) said.push("of " + count(trace.lostCauses) + " the cause is not known, as its record is gone");
      if (trace.leftOut) said.push(count(trace.leftOut) + " records at the end are left out, as there were too many");
      if (trace.merged)
        said.push("this is coarser than what was recorded: " + count(trace.merged) + " bars stand for several call-outs");
      const notice = document.getElementById("notice");
      notice.hidden = said.length === 0;
      notice.textContent = said.join("; ") + ".";
      document.getElementById("hang").disabled = hangs.length === 0;
      const used = new Set();
      for (const lane of lanes) for (const kind of lane.kind) used.add(kind);
      document.getElementById("legend").innerHTML = [...used].sort((l, r) => l - r).filter(kind => kind < HOST)
        .map(kind => `<span><span class="dot" style="background:var(--${kinds[kind]})"></span>${kinds[kind]}</span>`)
        .join("") + (used.has(SLEEP) ? "<span>··· sleep, with a tick if somebody woke it</span>" : "") +
        (lanes.some(lane => lane.queueMost > 0) ? swatch("faint", "queue: how much waits") +
          swatch("hang", "something waits longer than " + LATE / 1e6 + " ms") : "") +
        (hangs.length ? "<span><span style='color:var(--hang)'>▬</span> hang</span>" : "") +
        (lanes.some(lane => lane.shares.some((share, i) => i % 4 === 3 && share >= 0.1))
          ? "<span>▨ could run and had no processor</span>" : "") +
        (lanes.some(lane => lane.bands.length) ? swatch("band", "default mode") : "") +
        (lanes.some(lane => lane.bands.some(band => trace.modes[band.mode] !== "default"))
          ? swatch("accent", "another mode, wake-ups, what has caused it") : swatch("accent", "wake-ups, what has caused it"));
      document.getElementById("keys").innerHTML = "<h2>Keys</h2><dl>" +
        keyHelp.map(([name, what]) => `<dt><kbd>${name}</kbd></dt><dd>${what}</dd>`).join("") +
        "</dl><form method='dialog'><button>Close</button></form>";
      document.getElementById("stage").style.height = layOut() + 6 + "px";
      showDetail();
      showSites();
      new ResizeObserver(draw).observe(document.getElementById("stage"));
      const fitted = fitCanvas(chart);
      [width, height] = [fitted.width, fitted.height];
      show(0, Math.max(span, shortest));
      // Starts at the first hang.
      nextHang();
    }
    start();
    """#
}
