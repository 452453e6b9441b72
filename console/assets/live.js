// Reads the page again when the console says that it has changed, and puts the new
// content in place, unless somebody is filling in a form.
"use strict";

(() => {
  let events;

  const busy = () => {
    const main = document.getElementById("main");
    const filled = [...main.querySelectorAll("form[method=post] input:not([type=hidden]), form[method=post] textarea")]
      .some((field) => field.value !== field.defaultValue);
    return filled || main.querySelector("details[open]") !== null || main.contains(document.activeElement) && document.activeElement !== main;
  };

  const refresh = async () => {
    if (busy()) return;
    const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = page.getElementById("main");
    if (!fresh || busy()) return;
    document.getElementById("main").replaceWith(fresh);
    document.title = page.title;
  };

  const listen = () => {
    const address = document.getElementById("main").dataset.live;
    if (!address || document.hidden) return;
    events = new EventSource(address);
    events.addEventListener("changed", refresh);
  };

  // A page in the background asks for nothing.
  document.addEventListener("visibilitychange", () => {
    if (events) events.close();
    if (!document.hidden) refresh().then(listen, listen);
  });
  listen();
})();
