"use strict";
// Everything on this page can be read without this script. It adds quick tooltips, legends that single out
// a category, and a button that opens all episodes.
(() => {
  const tip = document.getElementById("tip");

  // The text of an element's title; it is moved, so that the browser does not show it a second time.
  const words = (element) => {
    if (element.dataset.tip === undefined) {
      const inner = element.querySelector(":scope > title");
      element.dataset.tip = inner ? inner.textContent : element.getAttribute("title") || "";
      if (inner) inner.remove();
      element.removeAttribute("title");
    }
    return element.dataset.tip;
  };
  const show = (event) => {
    const element = event.target.closest?.(".hit, .dot, .bar, .band > span, .hole, .detailed");
    const text = element && (element.closest("svg.arrow") ? "" : words(element));
    tip.hidden = !text;
    if (!text) return;
    tip.textContent = text;
    const { width, height } = tip.getBoundingClientRect();
    const x = Math.max(4, Math.min(event.clientX + 12, document.documentElement.clientWidth - width - 4));
    const above = event.clientY - height - 12;
    tip.style.left = x + "px";
    tip.style.top = (above < 4 ? event.clientY + 16 : above) + "px";
  };
  document.addEventListener("pointerover", show);
  document.addEventListener("scroll", () => { tip.hidden = true; }, { passive: true });

  // A legend's entry singles out its category: while pointed at or focused, or for good when pressed.
  const map = document.getElementById("fig-map");
  let pressed = null;
  const single = (button) => {
    for (const mark of map.querySelectorAll(".layer [data-label]")) {
      const other = button && mark.dataset.label !== button.dataset.label;
      mark.classList.toggle("dim", Boolean(other));
    }
  };
  for (const button of map.querySelectorAll(".legend button")) {
    button.setAttribute("aria-pressed", "false");
    for (const name of ["pointerenter", "focus"]) button.addEventListener(name, () => single(button));
    for (const name of ["pointerleave", "blur"]) button.addEventListener(name, () => single(pressed));
    button.addEventListener("click", () => {
      pressed?.setAttribute("aria-pressed", "false");
      pressed = pressed === button ? null : button;
      pressed?.setAttribute("aria-pressed", "true");
      single(pressed);
    });
  }
  for (const radio of map.querySelectorAll("input")) {
    radio.addEventListener("change", () => {
      pressed?.setAttribute("aria-pressed", "false");
      pressed = null;
      single(null);
    });
  }

  for (const button of document.querySelectorAll("[data-open]")) {
    button.hidden = false;
    const inside = () => [...document.querySelectorAll(button.dataset.open + " > details")];
    button.addEventListener("click", () => {
      const open = inside().some((one) => !one.open);
      for (const one of inside()) one.open = open;
      button.textContent = open ? "Close all" : "Open all";
    });
  }

  // Paper has nothing to click on.
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("details:not([open])")];
    for (const one of closed) one.open = true;
  });
  addEventListener("afterprint", () => { for (const one of closed) one.open = false; });
})();
