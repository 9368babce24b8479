// SPDX-License-Identifier: Apache-2.0

extension TimelinePage {
  /// The HTML of the page, except for the canvases' contents.
  static let body = #"""
    <header>
      <h1 id="title"></h1>
      <span class="facts" id="facts"></span>
      <span class="spacer"></span>
      <input id="search" type="search" placeholder="find a function ( / )" aria-label="find a function or thread">
      <button id="fit" title="the whole span (0)">All</button>
      <button id="hang" title="the next hang (h)">Next hang</button>
      <button id="theme" title="light or dark">◐<span class="sr">light or dark</span></button>
      <button id="help" title="keys (?)">?<span class="sr">keys</span></button>
    </header>
    <div id="notice" role="status" hidden></div>
    <canvas id="minimap" aria-hidden="true"></canvas>
    <div id="legend" aria-hidden="true"></div>
    <main id="stage">
      <canvas id="chart" tabindex="0" role="application"
        aria-label="timeline of the threads; n and p go from bar to bar, question mark lists the keys"></canvas>
      <div id="tip" hidden></div>
    </main>
    <div id="lower">
      <section id="detail" aria-label="what is selected"></section>
      <section id="sites" aria-label="by code"></section>
    </div>
    <div class="sr" id="live" aria-live="polite"></div>
    <dialog id="keys"></dialog>
    """#
}
