// Reads an open page again when the console says that the store has another state than the
// page shows. Nothing is replaced that the reader has typed, selected or focused, nor
// anything while updates are paused. All pages work without this script.
"use strict";

(() => {
  const main = () => document.getElementById("main");
  if (!main().dataset.live) return;

  const bar = document.getElementById("updates");
  const line = bar.querySelector("[role=status]"), pause = bar.querySelector("button");
  let events, timer, since, reads = 0, stale = false, paused = false;

  const time = () => new Date().toLocaleTimeString();

  const busy = () => {
    const marked = getSelection(), focused = document.activeElement;
    return !marked.isCollapsed && marked.containsNode(main(), true) ||
      focused !== main() && main().contains(focused) ||
      [...main().querySelectorAll("form[method=post] :is(input:not([type=hidden]), textarea)")]
        .some((field) => field.value !== field.defaultValue || field.checked !== field.defaultChecked);
  };

  // A change that cannot be shown is remembered (stale), and shown later (again).
  const refresh = async () => {
    stale = true;
    if (mustWait()) return;
    const read = ++reads; // a slow answer does not replace a later one
    let page;
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
      page = new DOMParser().parseFromString(await answer.text(), "text/html");
    } catch { /* there is no page */ }
    if (read !== reads || mustWait()) return;
    const fresh = page && page.getElementById("main");
    if (!fresh || !fresh.dataset.live) return lost(); // a gateway has answered
    stale = false;
    since = "";
    main().replaceWith(fresh);
    document.title = page.title;
    line.textContent = `Updated at ${time()}`;
  };

  const mustWait = () => {
    if (paused) return true;
    if (!busy()) return false;
    line.textContent = "This page has changed. It is read again when nothing on it is typed, selected or focused.";
    return true;
  };

  const again = () => { if (stale && !busy()) refresh(); };

  const listen = () => {
    clearTimeout(timer);
    if (events) events.close();
    if (paused || document.hidden) return; // a page in the background asks for nothing
    events = new EventSource(main().dataset.live);
    events.addEventListener("changed", refresh);
    events.addEventListener("error", lost);
    events.addEventListener("open", () => {
      if (since && !stale) line.textContent = since = "";
    });
  };

  // A browser does not connect again if a gateway has answered. The first failure is not
  // shown: streams are cut now and then.
  const lost = () => {
    events.close();
    if (since) line.textContent = `Not up to date since ${since}: the console does not answer, or you have to log in again.`;
    since = since || time();
    clearTimeout(timer);
    timer = setTimeout(listen, 3000);
  };

  pause.addEventListener("click", () => {
    paused = !paused;
    pause.textContent = paused ? "Resume updates" : "Pause updates";
    line.textContent = paused ? `Paused at ${time()}` : "";
    listen();
  });
  document.addEventListener("focusout", () => setTimeout(again)); // the next focus is known then
  document.addEventListener("selectionchange", again);
  document.addEventListener("input", again);
  document.addEventListener("visibilitychange", () => {
    listen();
    if (!document.hidden && !busy()) refresh();
  });
  const shown = new URL(location.href);
  if (shown.searchParams.has("done")) { // the next reading shows the state, and no longer what was done
    shown.searchParams.delete("done");
    history.replaceState(null, "", shown);
  }
  bar.hidden = false;
  listen();
})();
