// SPDX-License-Identifier: Apache-2.0

extension TimelinePage {
  /// Draws the lanes and the overview map.
  static let drawing = #"""
    // Drawing. A frame is drawn only after a change.
    const chart = document.getElementById("chart"), minimap = document.getElementById("minimap");
    const view = { begin: 0, end: Math.max(span, 1), top: 0 };
    let selected = null, hovered = null, chosenSite = -1, found = "";
    let colours = {}, hatch = null, isDue = false, width = 0, height = 0;
    const ROW = 18, BAND = 6, QUEUE = 16, GAP = 12, AXIS = 22;
    const labelWidth = () => width < 640 ? 96 : 190;

    function readColours() {
      const style = getComputedStyle(document.documentElement);
      colours = {};
      for (const name of ["back", "panel", "line", "text", "faint", "accent", "hang", "band", "sleep", ...kinds.slice(1)])
        colours[name] = style.getPropertyValue("--" + name).trim() || colours.sleep;
      const tile = document.createElement("canvas");
      tile.width = tile.height = 6;
      const pen = tile.getContext("2d");
      pen.strokeStyle = colours.back;
      pen.lineWidth = 1.5;
      pen.beginPath();
      pen.moveTo(-1, 7); pen.lineTo(7, -1); pen.moveTo(-1, 1); pen.lineTo(1, -1); pen.moveTo(5, 7); pen.lineTo(7, 5);
      pen.stroke();
      hatch = tile;
    }

    function laneHeight(lane) { return BAND + 3 + lane.rows * ROW + QUEUE + GAP; }

    function layOut() {
      let y = AXIS;
      for (const lane of lanes) { lane.y = y; y += laneHeight(lane); }
      return y;
    }

    const xOf = time => labelWidth() + (time - view.begin) / (view.end - view.begin) * (width - labelWidth());
    const timeOf = x => view.begin + (x - labelWidth()) / (width - labelWidth()) * (view.end - view.begin);

    function draw() { if (!isDue) { isDue = true; requestAnimationFrame(frame); } }

    function fitCanvas(canvas) {
      const ratio = window.devicePixelRatio || 1, box = canvas.getBoundingClientRect();
      const w = Math.round(box.width * ratio), h = Math.round(box.height * ratio);
      if (canvas.width !== w || canvas.height !== h) { canvas.width = w; canvas.height = h; }
      const pen = canvas.getContext("2d");
      pen.setTransform(ratio, 0, 0, ratio, 0, 0);
      return { pen, width: box.width, height: box.height };
    }

    function frame() {
      isDue = false;
      const fitted = fitCanvas(chart), pen = fitted.pen;
      width = fitted.width;
      height = fitted.height;
      const total = layOut();
      view.top = Math.max(0, Math.min(view.top, total - height));
      pen.fillStyle = colours.back;
      pen.fillRect(0, 0, width, height);
      pen.font = "12px system-ui, 'DejaVu Sans', sans-serif";
      pen.textBaseline = "middle";
      pen.save();
      pen.beginPath();
      pen.rect(0, AXIS, width, height - AXIS);
      pen.clip();
      pen.translate(0, -view.top);
      for (const lane of lanes)
        if (lane.y + laneHeight(lane) > view.top + AXIS && lane.y < view.top + height) drawLane(pen, lane);
      drawChain(pen);
      pen.restore();
      drawAxis(pen);
      drawMinimap();
    }

    function drawAxis(pen) {
      pen.fillStyle = colours.panel;
      pen.fillRect(0, 0, width, AXIS);
      const room = width - labelWidth(), shown = view.end - view.begin;
      let step = Math.pow(10, Math.floor(Math.log10(shown / Math.max(2, room / 90))));
      for (const factor of [1, 2, 5, 10]) if (shown / (step * factor) <= Math.max(2, room / 90)) { step *= factor; break; }
      pen.fillStyle = colours.faint;
      pen.strokeStyle = colours.line;
      pen.textAlign = "left";
      pen.beginPath();
      // The whole axis uses a single unit and precision.
      const [unit, size] = [["ns", 1], ["µs", 1e3], ["ms", 1e6], ["s", 1e9]].findLast(u => u[1] <= view.end) || ["ns", 1];
      const digits = Math.max(0, Math.ceil(-Math.log10(step / size) - 1e-9));
      const label = time => (time / size).toFixed(digits) + " " + unit;
      if (trace.wall !== null) pen.fillText(clock(view.begin), 10, AXIS / 2);
      for (let time = Math.ceil(view.begin / step) * step; time <= view.end; time += step) {
        const x = Math.round(xOf(time)) + 0.5;
        pen.moveTo(x, AXIS - 6);
        pen.lineTo(x, AXIS);
        const text = label(time);
        if (x + pen.measureText(text).width + 4 < width) pen.fillText(text, x + 4, AXIS / 2);
      }
      pen.moveTo(0, AXIS - 0.5);
      pen.lineTo(width, AXIS - 0.5);
      pen.stroke();
    }

    // Returns the first item that begins at or after a time.
    function firstAfter(lane, time) {
      let low = 0, high = lane.begin.length;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (lane.begin[middle] < time) low = middle + 1; else high = middle;
      }
      return low;
    }

    function eachVisible(lane, body) {
      const first = firstAfter(lane, view.begin), around = [];
      for (let i = first - 1; i >= 0; i = lane.parent[i]) if (lane.end[i] >= view.begin) around.unshift(i);
      for (const index of around) body(index);
      for (let i = first; i < lane.begin.length && lane.begin[i] <= view.end; i++) body(i);
    }

    function matches(lane, index) {
      if (chosenSite >= 0 && (!isCallOut(lane, index) || siteOf(lane, index) !== chosenSite)) return false;
      return found === "" || title(lane, index).toLowerCase().includes(found) || lane.name.toLowerCase().includes(found);
    }

    function drawLane(pen, lane) {
      const left = labelWidth(), top = lane.y + BAND + 3, bottom = lane.y + laneHeight(lane);
      pen.save();
      pen.beginPath();
      pen.rect(left, lane.y, width - left, bottom - lane.y);
      pen.clip();
      for (const band of lane.bands) drawBand(pen, lane, band);
      const hasFilter = chosenSite >= 0 || found !== "";
      // Bars narrower than a pixel are drawn once per pixel and row.
      const drawn = new Float64Array(lane.rows + 1).fill(-1);
      const titles = [];
      eachVisible(lane, index => {
        const kind = lane.kind[index];
        if (kind === RUN || kind === HOST) return;
        const x = Math.max(left - 2, xOf(lane.begin[index])), right = Math.min(width + 2, xOf(lane.end[index]));
        if (kind === SLEEP) return drawSleep(pen, lane, index, x, right, top);
        const row = Math.min(lane.level[index], lane.rows - 1), y = top + row * ROW;
        const isDimmed = hasFilter && !matches(lane, index);
        const wide = Math.max(1, right - x);
        if (wide < 1.5 && !isDimmed && Math.floor(x) === drawn[row]) return;
        if (wide < 1.5) drawn[row] = Math.floor(x);
        pen.globalAlpha = isDimmed ? 0.18 : 1;
        pen.fillStyle = colours[kinds[kind]];
        pen.fillRect(x, y, wide, ROW - 2);
        const isHang = lane.alone[index] >= HANG;
        if (isHang) { pen.fillStyle = colours.hang; pen.fillRect(x, y + ROW - 5, wide, 3); }
        if (wide > 34) titles.push([index, x, y, wide, isDimmed]);
        pen.globalAlpha = 1;
      });
      drawQueue(pen, lane, top + lane.rows * ROW);
      drawRunnable(pen, lane, top);
      // Drawn after the hatching, to keep the titles legible.
      for (const [index, x, y, wide, isDimmed] of titles) {
        pen.globalAlpha = isDimmed ? 0.18 : 1;
        drawTitle(pen, title(lane, index), x, y, wide, lane.count[index], colours[kinds[lane.kind[index]]]);
      }
      pen.globalAlpha = 1;
      drawFrames(pen, lane, top);
      pen.restore();
      drawLabel(pen, lane, bottom);
    }

    function drawBand(pen, lane, band) {
      if (band.end < view.begin || band.begin > view.end) return;
      const x = Math.max(labelWidth(), xOf(band.begin)), right = Math.min(width, xOf(band.end));
      const isDefault = trace.modes[band.mode] === "default";
      pen.fillStyle = isDefault ? colours.band : colours.accent;
      pen.globalAlpha = isDefault ? 1 : 0.55;
      pen.fillRect(x, lane.y, Math.max(1, right - x), BAND);
      pen.globalAlpha = 1;
    }

    // Draws the queue, in red where work has waited longer than the limit.
    function drawQueue(pen, lane, top) {
      const tall = QUEUE - 5, bottom = top + QUEUE - 3, left = labelWidth();
      if (lane.queueMost === 0) return;
      let low = 0, high = lane.queueTime.length;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (lane.queueTime[middle] < view.begin) low = middle + 1; else high = middle;
      }
      pen.fillStyle = colours.faint;
      pen.globalAlpha = 0.55;
      let x = left, depth = low > 0 ? lane.queueDepth[low - 1] : 0, most = depth;
      const fill = (from, to, waiting) => {
        const size = Math.max(1, waiting / lane.queueMost * tall);
        if (waiting > 0) pen.fillRect(from, bottom - size, Math.max(1, to - from), size);
      };
      for (let i = low; i <= lane.queueTime.length; i++) {
        const isLast = i === lane.queueTime.length || lane.queueTime[i] > view.end;
        const next = isLast ? Math.min(width, xOf(span)) : xOf(lane.queueTime[i]);
        const isFilled = isLast || next - x >= 1;
        if (isFilled) {
          // The maximum within the pixel, and the current value after it.
          fill(x, Math.min(next, x + 1), most);
          if (next > x + 1) fill(x + 1, next, depth);
          x = next;
        }
        if (isLast) break;
        depth = lane.queueDepth[i];
        most = isFilled ? depth : Math.max(most, depth);
      }
      pen.globalAlpha = 1;
      pen.fillStyle = colours.hang;
      for (const [begin, end] of lane.late) {
        if (end < view.begin || begin > view.end) continue;
        const from = Math.max(left, xOf(begin));
        pen.fillRect(from, bottom - tall, Math.max(1, Math.min(width, xOf(end)) - from), tall);
      }
    }

    function drawTitle(pen, text, x, y, wide, many, behind) {
      pen.textAlign = "left";
      if (many > 1) text = count(many) + " × " + text;
      const from = Math.max(x, labelWidth());
      const room = wide - (from - x) - 8, size = 6.3;
      if (room < 26) return;
      if (text.length * size > room) text = text.slice(0, Math.max(1, Math.floor(room / size) - 1)) + "…";
      pen.fillStyle = behind;
      pen.fillRect(from + 2, y + 1, Math.min(room + 4, pen.measureText(text).width + 4), ROW - 6);
      pen.fillStyle = colours.back;
      pen.fillText(text, from + 4, y + ROW / 2 - 1.5);
    }

    // A sleep is empty, with a tick where another thread ended it.
    function drawSleep(pen, lane, index, x, right, top) {
      const row = Math.min(lane.level[index], lane.rows - 1), y = top + row * ROW;
      if (right - x > 3) {
        pen.strokeStyle = colours.sleep;
        pen.lineWidth = 1;
        pen.beginPath();
        pen.moveTo(x + 1, y + ROW / 2 + 0.5);
        pen.lineTo(right - 1, y + ROW / 2 + 0.5);
        pen.setLineDash([1, 3]);
        pen.stroke();
        pen.setLineDash([]);
      }
      const cause = causeOf.get(key(lane.number, index));
      if (right - x < 2 || lane.flags[index] & OPEN) return;
      pen.fillStyle = cause === undefined ? colours.sleep : colours.accent;
      if (cause === undefined && !(lane.flags[index] & DESCRIPTOR)) return;
      pen.beginPath();
      pen.moveTo(right - 4, y + 2);
      pen.lineTo(right + 0.5, y + ROW / 2 - 1);
      pen.lineTo(right - 4, y + ROW - 4);
      pen.fill();
    }

    // Hatches the times in which the thread was runnable without a processor.
    function drawRunnable(pen, lane, top) {
      const pattern = pen.createPattern(hatch, "repeat");
      for (let i = 0; i < lane.shares.length; i += 4) {
        const [begin, end, , runnable] = lane.shares.subarray(i, i + 4);
        if (runnable < 0.1 || end < view.begin || begin > view.end) continue;
        pen.fillStyle = pattern;
        pen.globalAlpha = Math.min(1, runnable + 0.25);
        // Drawn from the left of each span, with a width proportional to the share.
        const x = xOf(begin), wide = (xOf(end) - x) * Math.min(1, runnable);
        if (wide > 1) pen.fillRect(x, top, wide, lane.rows * ROW - 2);
        pen.globalAlpha = 1;
      }
    }

    function drawFrames(pen, lane, top) {
      for (const [item, colour] of [[hovered, colours.faint], [selected, colours.text]]) {
        if (!item || item.lane !== lane.number) continue;
        const x = xOf(lane.begin[item.index]), right = xOf(lane.end[item.index]);
        const row = Math.min(lane.level[item.index], lane.rows - 1);
        pen.strokeStyle = colour;
        pen.lineWidth = item === selected ? 2 : 1;
        pen.strokeRect(x - 1, top + row * ROW - 1, Math.max(3, right - x + 2), ROW);
      }
    }

    function drawLabel(pen, lane, bottom) {
      const left = labelWidth();
      pen.fillStyle = colours.back;
      pen.fillRect(0, lane.y, left - 4, bottom - lane.y);
      pen.fillStyle = colours.text;
      pen.textAlign = "left";
      let name = lane.name;
      const most = Math.floor((left - 16) / 6.6);
      if (name.length > most) name = name.slice(0, most - 1) + "…";
      pen.fillText(name, 10, lane.y + BAND + 3 + ROW / 2);
      pen.fillStyle = colours.faint;
      pen.font = "11px system-ui, 'DejaVu Sans', sans-serif";
      const below = lane.tid + (lane.lost ? " · " + count(lane.lost) + " lost" : "");
      if (lane.rows > 1 || left > 100) pen.fillText(below, 10, lane.y + BAND + ROW + 8);
      pen.font = "12px system-ui, 'DejaVu Sans', sans-serif";
      pen.strokeStyle = colours.line;
      pen.lineWidth = 1;
      pen.beginPath();
      pen.moveTo(0, Math.round(bottom - GAP / 2) + 0.5);
      pen.lineTo(width, Math.round(bottom - GAP / 2) + 0.5);
      pen.stroke();
    }

    // Draws curves between the causes and effects of the selected item.
    function drawChain(pen) {
      if (!selected) return;
      pen.save();
      pen.beginPath();
      pen.rect(labelWidth(), 0, width, layOut());
      pen.clip();
      for (const e of chainOf(selected)) {
        const to = lanes[edges.toLane[e]], row = Math.min(to.level[edges.to[e]], to.rows - 1);
        const isWake = edges.kind[e] === WAKE;
        const x2 = xOf(isWake ? to.end[edges.to[e]] : to.begin[edges.to[e]]), y2 = to.y + BAND + 3 + row * ROW + ROW / 2;
        if (edges.from[e] < 0) continue;
        const from = lanes[edges.fromLane[e]], start = Math.min(from.level[edges.from[e]], from.rows - 1);
        const x1 = xOf(isWake ? Math.min(from.end[edges.from[e]], edges.time[e]) : edges.time[e]);
        const y1 = from.y + BAND + 3 + start * ROW + ROW / 2;
        pen.strokeStyle = colours.accent;
        pen.lineWidth = 1.5;
        pen.globalAlpha = 0.85;
        pen.beginPath();
        pen.moveTo(x1, y1);
        const bend = Math.max(14, Math.min(90, Math.abs(x2 - x1) / 2));
        pen.bezierCurveTo(x1 + bend, y1, x2 - bend, y2, x2, y2);
        pen.stroke();
        pen.fillStyle = colours.accent;
        pen.beginPath();
        pen.moveTo(x2, y2); pen.lineTo(x2 - 6, y2 - 3.5); pen.lineTo(x2 - 6, y2 + 3.5);
        pen.fill();
      }
      pen.restore();
    }

    let shape = null;
    function drawMinimap() {
      const { pen, width: w, height: h } = fitCanvas(minimap);
      pen.fillStyle = colours.panel;
      pen.fillRect(0, 0, w, h);
      // The load of the loops per pixel, computed once per width.
      if (!shape || shape.length !== Math.ceil(w)) {
        shape = new Float64Array(Math.ceil(w));
        const pixel = Math.max(span, 1) / w;
        for (const lane of lanes)
          for (let i = 0; i < lane.begin.length; i++) {
            if (!isCallOut(lane, i) || lane.level[i] > 0) continue;
            const first = Math.max(0, Math.floor(lane.begin[i] / pixel));
            const last = Math.min(shape.length - 1, Math.floor(lane.end[i] / pixel));
            for (let at = first; at <= last; at++)
              shape[at] += (Math.min(lane.end[i], (at + 1) * pixel) - Math.max(lane.begin[i], at * pixel)) / pixel;
          }
      }
      const most = shape.reduce((left, right) => Math.max(left, right), 0.01);
      pen.fillStyle = colours.block;
      for (let x = 0; x < shape.length; x++) {
        const tall = shape[x] > 0 ? Math.max(2, shape[x] / most * (h - 14)) : 0;
        pen.fillRect(x, h - 2 - tall, 1, tall);
      }
      pen.fillStyle = colours.hang;
      for (const hang of hangs) {
        const lane = lanes[hang.lane], x = lane.begin[hang.index] / span * w;
        pen.fillRect(x, 0, Math.max(2, (lane.end[hang.index] - lane.begin[hang.index]) / span * w), 6);
      }
      const x = view.begin / span * w, right = view.end / span * w;
      pen.fillStyle = colours.back;
      pen.globalAlpha = 0.6;
      pen.fillRect(0, 0, x, h);
      pen.fillRect(right, 0, w - right, h);
      pen.globalAlpha = 1;
      pen.strokeStyle = colours.accent;
      pen.lineWidth = 1.5;
      pen.strokeRect(x + 0.75, 0.75, Math.max(3, right - x - 1.5), h - 1.5);
    }
    """#
}
