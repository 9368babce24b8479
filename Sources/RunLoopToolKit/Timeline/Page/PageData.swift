// SPDX-License-Identifier: Apache-2.0

extension TimelinePage {
  /// Decodes the columns, and computes bands, hangs and chains from them.
  static let data = #"""
    "use strict";
    // The columns of each lane: little-endian numbers in base64.
    const kinds = ["", "block", "perform", "job", "timer", "source0", "source1", "observer", "mainQueue", "schedule",
      "cancel", "host", "sleep", "run"];
    const HOST = 11, SLEEP = 12, RUN = 13, HANG = 250e6, LATE = 100e6;
    const trace = JSON.parse(document.getElementById("trace").textContent);

    function column(text, Kind) {
      const raw = atob(text);
      const bytes = new Uint8Array(raw.length);
      for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
      return new Kind(bytes.buffer);
    }

    const lanes = trace.lanes.map((lane, number) => ({
      number, name: lane.name, tid: lane.tid, lost: lane.lost, torn: lane.torn,
      begin: column(lane.begin, Float64Array), end: column(lane.end, Float64Array),
      posted: column(lane.posted, Float64Array),
      kind: column(lane.kind, Uint8Array), mode: column(lane.mode, Uint8Array), flags: column(lane.flags, Uint8Array),
      code: column(lane.code, Int32Array), site: column(lane.site, Int32Array), parent: column(lane.parent, Int32Array),
      count: column(lane.count, Uint32Array), shares: column(lane.shares, Float64Array),
    }));
    const OPEN = 1, LOST_END = 2, AWAITED = 4, DESCRIPTOR = 8;
    const edges = {
      fromLane: column(trace.edges.fromLane, Int32Array), from: column(trace.edges.from, Int32Array),
      toLane: column(trace.edges.toLane, Int32Array), to: column(trace.edges.to, Int32Array),
      kind: column(trace.edges.kind, Uint8Array), time: column(trace.edges.time, Float64Array),
    };
    const edgeNames = ["posted", "signalled", "sent", "added or moved", "woke", "returned to"];
    const WAKE = 4, BACK = 5;
    const span = trace.span;

    // Computes the nesting level of each bar, the bands of modes, and the hangs.
    const hangs = [];
    for (const lane of lanes) {
      const count = lane.begin.length;
      lane.level = new Uint8Array(count);
      lane.rows = 1;
      // The longest time of each bar without a nested run.
      lane.alone = new Float64Array(count);
      const since = lane.begin.slice();
      lane.bands = [];
      const stack = [];
      let mode = 255;
      const change = (time, next) => {
        if (next === mode) return;
        const last = lane.bands[lane.bands.length - 1];
        if (last) last.end = time;
        if (next !== 255) lane.bands.push({ begin: time, end: span, mode: next });
        mode = next;
      };
      const leave = index => {
        stack.pop();
        const around = stack[stack.length - 1];
        if (around !== undefined) change(lane.end[index], lane.mode[around]);
        else if (lane.kind[index] === RUN) change(lane.end[index], 255);
      };
      for (let i = 0; i < count; i++) {
        while (stack.length && stack[stack.length - 1] !== lane.parent[i]) leave(stack[stack.length - 1]);
        change(lane.begin[i], lane.mode[i]);
        stack.push(i);
        const parent = lane.parent[i];
        const isBar = lane.kind[i] !== RUN && lane.kind[i] !== HOST;
        lane.level[i] = parent < 0 ? 0 : Math.min(9, lane.level[parent] + (isCallOut(lane, parent) ? 1 : 0));
        if (isBar && lane.level[i] + 1 > lane.rows) lane.rows = lane.level[i] + 1;
        if (isBar) continue;
        for (let around = parent; around >= 0; around = lane.parent[around]) {
          lane.alone[around] = Math.max(lane.alone[around], lane.begin[i] - since[around]);
          since[around] = Math.max(since[around], lane.end[i]);
        }
      }
      for (let i = 0; i < count; i++) {
        lane.alone[i] = Math.max(lane.alone[i], lane.end[i] - since[i]);
        if (isCallOut(lane, i) && lane.alone[i] >= HANG) hangs.push({ lane: lane.number, index: i });
      }
      while (stack.length) leave(stack[stack.length - 1]);
      const last = lane.bands[lane.bands.length - 1];
      if (last && last.end === span && count && stack.length === 0) last.end = Math.min(span, Math.max(last.begin, span));
      lane.rows = Math.min(lane.rows, 5);
    }
    // Computes the queue of each loop as a step function, and the times of long waits.
    for (const lane of lanes) {
      const steps = [];
      for (let i = 0; i < lane.begin.length; i++) {
        const posted = lane.posted[i];
        if (posted !== posted || posted >= lane.begin[i]) continue;
        steps.push([posted, lane.count[i]], [lane.begin[i], -lane.count[i]]);
      }
      steps.sort((a, b) => a[0] - b[0]);
      lane.queueTime = Float64Array.from(steps, step => step[0]);
      let depth = 0;
      lane.queueDepth = Float64Array.from(steps, step => depth = Math.max(0, depth + step[1]));
      // The merged times in which work waited longer than the limit.
      lane.late = [];
      for (let i = 0; i < lane.begin.length; i++) {
        if (!(lane.begin[i] - lane.posted[i] >= LATE)) continue;
        const last = lane.late[lane.late.length - 1], from = lane.posted[i] + LATE;
        if (last && from <= last[1]) last[1] = Math.max(last[1], lane.begin[i]);
        else lane.late.push([from, lane.begin[i]]);
      }
      lane.queueMost = lane.queueDepth.reduce((left, right) => Math.max(left, right), 0);
    }
    hangs.sort((a, b) => lanes[a.lane].begin[a.index] - lanes[b.lane].begin[b.index]);

    // Maps from each item to the edges that lead to it and leave it.
    const causeOf = new Map(), effectsOf = new Map();
    const key = (lane, index) => lane * 16777216 + index;
    for (let e = 0; e < edges.to.length; e++) {
      const to = key(edges.toLane[e], edges.to[e]);
      if (edges.kind[e] !== BACK) causeOf.set(to, e);
      if (edges.from[e] < 0 || edges.kind[e] === BACK) continue;
      const from = key(edges.fromLane[e], edges.from[e]);
      if (!effectsOf.has(from)) effectsOf.set(from, []);
      effectsOf.get(from).push(e);
    }

    // The stacks of hanging threads, by item.
    const stackOf = new Map(trace.stacks.map(stack => [key(stack.lane, stack.index), stack]));

    function isCallOut(lane, index) { return lane.kind[index] < HOST; }

    function title(lane, index) {
      const kind = lane.kind[index];
      if (kind === SLEEP) return "sleep";
      if (kind === RUN || kind === HOST) return kinds[kind] + " " + (trace.modes[lane.mode[index]] || "");
      const name = trace.names[lane.code[index]];
      return name ? name[0] : kinds[kind];
    }

    function place(number) {
      const name = trace.names[number];
      return name && name[1] ? name[1] + ":" + name[2] : "";
    }

    function duration(ns) {
      const size = Math.abs(ns);
      if (size === 0) return "0";
      if (size < 1e3) return Math.round(ns) + " ns";
      if (size < 1e6) return (ns / 1e3).toFixed(size < 1e4 ? 2 : 1) + " µs";
      if (size < 1e9) return (ns / 1e6).toFixed(size < 1e7 ? 2 : 1) + " ms";
      return (ns / 1e9).toFixed(size < 1e10 ? 2 : 1) + " s";
    }

    // Formats a time of the trace, which may be before its beginning.
    function moment(ns) { return ns < 0 ? duration(-ns) + " before" : duration(ns) + wall(ns); }

    // Formats the time of day, if it is known.
    function clock(ns) {
      const date = new Date(trace.wall + ns / 1e6), two = number => String(number).padStart(2, "0");
      return two(date.getHours()) + ":" + two(date.getMinutes()) + ":" + two(date.getSeconds()) + "." +
        String(date.getMilliseconds()).padStart(3, "0");
    }
    const wall = ns => trace.wall === null ? "" : ", " + clock(ns);

    const count = number => number.toLocaleString("en-US");

    function escaped(text) {
      return String(text).replace(/[&<>"]/g, c => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);
    }
    """#
}
