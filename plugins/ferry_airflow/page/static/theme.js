// Before anything is painted: Airflow's theme when the page is inside Airflow, else the reader's own.
"use strict";
(() => {
  const root = document.documentElement;
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  let outer = null;
  try {
    if (window.parent !== window) outer = window.parent.document.documentElement;
  } catch {
    outer = null; // another origin
  }
  const stored = () => {
    try {
      return window.localStorage.getItem("theme");
    } catch {
      return null;
    }
  };
  const dark = () => {
    if (outer) {
      if (outer.classList.contains("dark")) return true;
      if (outer.classList.contains("light")) return false;
    }
    const chosen = stored();
    if (chosen === "dark" || chosen === "light") return chosen === "dark";
    return system.matches;
  };
  const apply = () => {
    const next = dark() ? "dark" : "light";
    if (root.dataset.theme === next) return;
    root.dataset.theme = next;
    document.dispatchEvent(new CustomEvent("ferry:theme"));
  };
  apply();
  system.addEventListener("change", apply);
  window.addEventListener("storage", apply);
  if (outer) new MutationObserver(apply).observe(outer, { attributes: true, attributeFilter: ["class"] });
  root.classList.toggle("framed", Boolean(outer));
})();
