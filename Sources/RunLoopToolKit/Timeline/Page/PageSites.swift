// SPDX-License-Identifier: Apache-2.0

extension TimelinePage {
  /// Shows the table by code.
  static let sites = #"""
    // The table by code: counts, durations and delays.
    const sites = new Map();
    function siteOf(lane, index) {
      return lane.code[index] >= 0 ? lane.code[index] * 16 + lane.kind[index] : -2 - lane.kind[index];
    }

    for (const lane of lanes)
      for (let i = 0; i < lane.begin.length; i++) {
        if (!isCallOut(lane, i)) continue;
        const at = siteOf(lane, i);
        let row = sites.get(at);
        if (!row) {
          row = { at, name: title(lane, i), place: place(lane.code[i]), kind: lane.kind[i], count: 0, total: 0 };
          row.runs = [];
          row.delays = [];
          sites.set(at, row);
        }
        const took = lane.end[i] - lane.begin[i], many = lane.count[i];
        row.count += many;
        row.total += took;
        row.runs.push(took / many);
        const posted = lane.posted[i];
        if (posted === posted) row.delays.push(Math.max(0, lane.begin[i] - posted));
      }

    function share(list, part) {
      return list.length ? list[Math.min(list.length - 1, Math.floor(list.length * part))] : null;
    }

    const rows = [...sites.values()];
    for (const row of rows) {
      row.runs = Float64Array.from(row.runs).sort();
      row.delays = Float64Array.from(row.delays).sort();
      row.run50 = share(row.runs, 0.5); row.run99 = share(row.runs, 0.99);
      row.delay50 = share(row.delays, 0.5); row.delay99 = share(row.delays, 0.99);
    }
    const columns = [["name", "code"], ["count", "count"], ["total", "total"], ["run50", "run p50"], ["run99", "run p99"],
      ["delay50", "delay p50"], ["delay99", "delay p99"]];
    let order = { by: "total", isUp: false };

    function showSites() {
      const sorted = rows.slice().sort((a, b) => {
        const l = a[order.by], r = b[order.by];
        const way = typeof l === "string" ? l.localeCompare(r) : (l === null ? -1 : l) - (r === null ? -1 : r);
        return order.isUp ? way : -way;
      });
      const shown = found ? sorted.filter(row => row.name.toLowerCase().includes(found)) : sorted;
      const head = columns.map(([name, text]) => {
        const way = order.by === name ? `aria-sort="${order.isUp ? "ascending" : "descending"}"` : "";
        return `<th scope="col" ${way}><button data-column="${name}">${text}</button></th>`;
      });
      const cell = value => value === null ? "–" : duration(value);
      const body = shown.slice(0, 500).map(row =>
        `<tr tabindex="0" data-site="${row.at}" aria-selected="${row.at === chosenSite}">` +
        `<td><span class="dot" style="background:var(--${kinds[row.kind]})"></span>${escaped(row.name)} ` +
        `<span class="place">${escaped(row.place)}</span></td><td>${count(row.count)}</td><td>${duration(row.total)}</td>` +
        `<td>${cell(row.run50)}</td><td>${cell(row.run99)}</td><td>${cell(row.delay50)}</td>` +
        `<td>${cell(row.delay99)}</td></tr>`);
      document.getElementById("sites").innerHTML =
        `<table><caption class="sr">by code</caption><thead><tr>${head.join("")}</tr></thead>` +
        `<tbody>${body.join("")}</tbody></table>` +
        (shown.length === 0 ? "<p class='place'>No call-out is recorded.</p>" : "");
    }

    function chooseSite(at) {
      chosenSite = chosenSite === at ? -1 : at;
      showSites();
      draw();
    }
    """#
}
