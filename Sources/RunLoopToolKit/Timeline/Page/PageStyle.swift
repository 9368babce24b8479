// SPDX-License-Identifier: Apache-2.0

extension TimelinePage {
  /// The styles of the page, light and dark.
  static let style = #"""
    :root {
      color-scheme: light dark;
      --back: #ffffff; --panel: #f5f6f8; --line: #d9dde3; --text: #1d2329; --faint: #68717d; --accent: #1f5fbf;
      --hang: #c8372d; --focus: #0b57d0; --band: #e9edf3; --sleep: #b9c1cb;
      --block: #3b78c9; --perform: #16877c; --job: #7e57c2; --timer: #b26a00; --source0: #3f8f3a; --source1: #0e84a8;
      --observer: #77818d; --mainQueue: #b4437f; --schedule: #5d6d7e; --cancel: #8d6e63; --host: #a1887f; --run: #c3cad3;
    }
    :root[data-theme="dark"] {
      --back: #16191d; --panel: #1e2227; --line: #363c44; --text: #e4e7eb; --faint: #98a2ae; --accent: #7db0ff;
      --hang: #ff6b5e; --focus: #8ab8ff; --band: #262b32; --sleep: #4a525c;
      --block: #5b9bea; --perform: #35b3a6; --job: #a98be0; --timer: #e0a040; --source0: #6fbf69; --source1: #45b5d6;
      --observer: #97a1ad; --mainQueue: #e07fb4; --schedule: #8796a8; --cancel: #b89a8f; --host: #bfa79e; --run: #444c56;
    }
    * { box-sizing: border-box; }
    html, body { height: 100%; margin: 0; }
    body {
      display: flex; flex-direction: column; background: var(--back); color: var(--text);
      font: 13px/1.4 system-ui, "Segoe UI", "DejaVu Sans", sans-serif;
    }
    header { display: flex; flex-wrap: wrap; align-items: center; gap: 4px 14px; padding: 8px 12px; }
    h1 { font-size: 15px; margin: 0; font-weight: 600; }
    header .facts { color: var(--faint); }
    header .spacer { flex: 1; }
    button, input {
      font: inherit; color: var(--text); background: var(--panel); border: 1px solid var(--line); border-radius: 5px;
      padding: 3px 9px;
    }
    button { cursor: pointer; }
    button:hover { border-color: var(--accent); }
    input { width: 190px; }
    :focus-visible { outline: 2px solid var(--focus); outline-offset: 1px; }
    #notice { background: var(--panel); border-left: 3px solid var(--hang); padding: 5px 12px; margin: 0 12px 6px; }
    #minimap { display: block; width: 100%; height: 46px; border-top: 1px solid var(--line); cursor: pointer; }
    #stage { flex: 0 0 auto; min-height: 70px; max-height: 62%; position: relative; overflow: hidden; border-top: 1px solid var(--line); }
    #chart { position: absolute; inset: 0; width: 100%; height: 100%; display: block; cursor: default; }
    #tip {
      position: absolute; pointer-events: none; max-width: 420px; background: var(--panel); border: 1px solid var(--line);
      border-radius: 5px; padding: 5px 8px; box-shadow: 0 2px 8px #0003; font-size: 12px; overflow-wrap: anywhere;
    }
    #tip b { font-weight: 600; }
    #lower { flex: 1 1 0; min-height: 130px; display: flex; border-top: 1px solid var(--line); overflow: hidden; }
    section { overflow: auto; padding: 8px 12px; }
    #detail { flex: 0 1 38%; border-right: 1px solid var(--line); min-width: 0; }
    #sites { flex: 1 1 62%; min-width: 0; padding-top: 0; }
    h2 { font-size: 12px; margin: 0 0 6px; color: var(--faint); font-weight: 600; }
    dl { display: grid; grid-template-columns: max-content 1fr; gap: 1px 10px; margin: 0 0 8px; }
    dt { color: var(--faint); }
    dd { margin: 0; overflow-wrap: anywhere; }
    ol, ul { list-style: none; margin: 0 0 8px; padding: 0; }
    li button {
      width: 100%; text-align: left; border: 0; background: none; padding: 2px 4px; border-radius: 4px;
      overflow-wrap: anywhere;
    }
    li button:hover { background: var(--band); }
    li .when { color: var(--faint); font-variant-numeric: tabular-nums; }
    .dot { display: inline-block; width: 9px; height: 9px; border-radius: 2px; margin-right: 6px; }
    table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
    th, td { padding: 2px 8px; text-align: right; white-space: nowrap; }
    th:first-child, td:first-child { text-align: left; white-space: normal; overflow-wrap: anywhere; min-width: 230px; }
    thead th {
      position: sticky; top: 0; background: var(--back); color: var(--faint); font-weight: 600; padding: 8px 8px 4px;
      border-bottom: 1px solid var(--line);
    }
    th button { border: 0; background: none; color: inherit; padding: 0; font-weight: 600; }
    th[aria-sort="descending"] button::after { content: " ▾"; }
    th[aria-sort="ascending"] button::after { content: " ▴"; }
    tbody tr { cursor: pointer; }
    tbody tr:hover, tbody tr:focus-visible { background: var(--band); }
    tbody tr[aria-selected="true"] { background: var(--band); box-shadow: inset 3px 0 var(--accent); }
    .place { color: var(--faint); }
    dialog { color: var(--text); background: var(--back); border: 1px solid var(--line); border-radius: 8px; max-width: 520px; }
    dialog::backdrop { background: #0006; }
    kbd {
      font: 11px ui-monospace, "DejaVu Sans Mono", monospace; border: 1px solid var(--line); border-radius: 4px;
      padding: 1px 5px; background: var(--panel);
    }
    #legend { display: flex; flex-wrap: wrap; gap: 2px 12px; color: var(--faint); padding: 3px 12px; font-size: 12px; }
    .sr { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
    @media (max-width: 760px) {
      #lower { flex-direction: column; overflow: auto; }
      #detail { border-right: 0; border-bottom: 1px solid var(--line); flex: none; max-height: none; }
      #sites { flex: none; overflow: visible; }
      section { overflow: visible; }
      #sites { overflow-x: auto; }
      thead th { position: static; }
      input { width: 130px; }
      .wide { display: none; }
    }
    """#
}
