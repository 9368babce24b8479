// SPDX-License-Identifier: Apache-2.0

extension TimelinePage {
  /// Shows the selected item with its causes and effects.
  static let chain = #"""
    // The selected item: the chain back to the first cause, and forward to everything that it caused.
    function fact(lane, index) {
      const posted = lane.posted[index], flags = lane.flags[index];
      return {
        took: lane.end[index] - lane.begin[index],
        delay: posted === posted ? Math.max(0, lane.begin[index] - posted) : null,
        isOpen: (flags & OPEN) !== 0, isEndLost: (flags & LOST_END) !== 0,
      };
    }

    function back(item) {
      const chain = [], seen = new Set();
      let at = key(item.lane, item.index);
      while (causeOf.has(at) && !seen.has(at) && chain.length < 200) {
        seen.add(at);
        const e = causeOf.get(at);
        chain.push(e);
        if (edges.from[e] < 0) break;
        at = key(edges.fromLane[e], edges.from[e]);
      }
      return chain;
    }

    function forward(item, most) {
      const found = [], queue = [[key(item.lane, item.index), 1]], seen = new Set([queue[0][0]]);
      while (queue.length && found.length < most) {
        const [at, depth] = queue.shift();
        for (const e of effectsOf.get(at) || []) {
          const to = key(edges.toLane[e], edges.to[e]);
          if (seen.has(to)) continue;
          seen.add(to);
          found.push({ e, depth });
          if (found.length >= most) break;
          if (edges.kind[e] !== WAKE) queue.push([to, depth + 1]);
        }
      }
      return found;
    }

    let chain = null;
    function chainOf(item) {
      if (!chain || chain.item !== item)
        chain = { item, list: [...back(item), ...forward(item, 400).map(step => step.e)] };
      return chain.list;
    }

    function dot(lane, index) {
      return `<span class="dot" style="background:var(--${kinds[lane.kind[index]]})"></span>`;
    }

    function stepButton(lane, index, how, indent) {
      const where = place(lane.code[index]);
      return `<li><button data-lane="${lane.number}" data-index="${index}" style="padding-left:${4 + indent * 12}px">` +
        `${dot(lane, index)}${escaped(title(lane, index))} <span class="place">${escaped(where)}</span><br>` +
        `<span class="when">${how} · ${escaped(lane.name)} at ${moment(lane.begin[index])}</span></button></li>`;
    }

    function threadName(e) {
      const lane = lanes[edges.fromLane[e]];
      if (edges.fromLane[e] >= 0 && lane) return lane.name;
      const thread = trace.threads[-1 - edges.fromLane[e]];
      return thread ? thread.name + " (" + thread.tid + ")" : "a thread";
    }

    function showDetail() {
      const panel = document.getElementById("detail"), live = document.getElementById("live");
      if (!selected) {
        panel.innerHTML = "<h2>Nothing is selected</h2>Click a bar to see what it was caused by, and what it has caused. " +
          "Drag to move, turn the wheel to zoom, press <kbd>?</kbd> for the keys.";
        return;
      }
      const lane = lanes[selected.lane], index = selected.index, facts = fact(lane, index);
      const rows = [];
      const code = trace.names[lane.code[index]], site = trace.names[lane.site[index]];
      if (code) rows.push(["code", escaped(code[0]) + ` <span class="place">${escaped(place(lane.code[index]))}</span>`]);
      if (site)
        rows.push([lane.kind[index] === RUN ? "run from" : "from", escaped(site[0]) +
          ` <span class="place">${escaped(place(lane.site[index]))}</span>`]);
      rows.push(["thread", escaped(lane.name) + ` <span class="place">${lane.tid}</span>`]);
      rows.push(["mode", escaped(trace.modes[lane.mode[index]] || "–")]);
      rows.push(["begin", moment(lane.begin[index])]);
      const lasts = facts.isOpen ? "goes on"
        : facts.isEndLost ? "not known, its record was overwritten" : duration(facts.took);
      rows.push([lane.count[index] > 1 ? "all of them took" : "took", lasts]);
      if (facts.delay !== null) rows.push(["waited", duration(facts.delay)]);
      if (lane.count[index] > 1) rows.push(["stands for", count(lane.count[index]) + " of them"]);
      if (lane.flags[index] & DESCRIPTOR) rows.push(["ended by", "a descriptor that was ready"]);
      if (lane.flags[index] & AWAITED) rows.push(["poster", "waits until it is done"]);
      let html = `<h2>${dot(lane, index)}${kinds[lane.kind[index]]}</h2><dl>` +
        rows.map(([name, value]) => `<dt>${name}</dt><dd>${value}</dd>`).join("") + "</dl>";
      const stack = stackOf.get(key(selected.lane, index));
      if (stack) {
        html += `<h2>It hung</h2><div class="place">${escaped(stack.state)}</div><ol>` + stack.names.map(number =>
          `<li style="padding:2px 4px">${escaped(trace.names[number][0])} ` +
          `<span class="place">${escaped(place(number))}</span></li>`).join("") + "</ol>";
      }
      const causes = back(selected);
      html += "<h2>Back to the cause</h2><ol>";
      for (const e of causes) {
        const how = edgeNames[edges.kind[e]] + (edges.kind[e] === WAKE ? " it" : " at " + moment(edges.time[e]));
        html += edges.from[e] < 0
          ? `<li style="padding:2px 4px">${escaped(threadName(e))}, in no call-out of a loop<br>` +
            `<span class="when">${how}</span></li>`
          : stepButton(lanes[edges.fromLane[e]], edges.from[e], how, 0);
      }
      html += causes.length ? "</ol>" : "<li class='place'>No cause is recorded.</li></ol>";
      const effects = forward(selected, 200);
      html += `<h2>Forward to its effects${effects.length >= 200 ? ", the first 200" : ""}</h2><ol>`;
      for (const { e, depth } of effects)
        html += stepButton(lanes[edges.toLane[e]], edges.to[e], edgeNames[edges.kind[e]], depth - 1);
      html += effects.length ? "</ol>" : "<li class='place'>It has caused nothing that is recorded.</li></ol>";
      panel.innerHTML = html;
      live.textContent = `${title(lane, index)}, ${kinds[lane.kind[index]]} on ${lane.name}, took ${lasts}`;
    }
    """#
}
