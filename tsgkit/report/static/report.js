// Plots of a report: the values under the pointer or by the arrow keys, and a larger size.
"use strict";

function readable(value) {
  if (value === null) return "–";
  return Math.abs(value) >= 1000 ? Math.round(value).toLocaleString("en") : Number(value.toPrecision(4)).toString();
}

for (const plot of document.querySelectorAll("[data-plot]")) {
  const { box, limits, x, series, label } = JSON.parse(plot.dataset.plot);
  const [left, top, right, bottom] = box;
  const svg = plot.querySelector("svg");
  const cursor = document.createElementNS("http://www.w3.org/2000/svg", "line");
  for (const [name, value] of [["y1", top], ["y2", bottom], ["stroke", "currentColor"], ["stroke-width", 0.7], ["visibility", "hidden"]]) {
    cursor.setAttribute(name, value);
  }
  svg.append(cursor);
  const values = document.createElement("p");
  values.className = "values quiet";
  values.setAttribute("aria-live", "polite");
  values.textContent = "Point at the plot, or select it and use the arrow keys.";
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Enlarge";
  button.setAttribute("aria-label", `Enlarge the plot ${svg.getAttribute("aria-label")}`);
  button.setAttribute("aria-pressed", "false");
  button.addEventListener("click", () => {
    button.setAttribute("aria-pressed", String(plot.parentElement.classList.toggle("large")));
  });
  plot.append(button, values);
  svg.setAttribute("tabindex", "0");
  let place = x.length - 1;

  function show(next) {
    place = Math.max(0, Math.min(x.length - 1, next));
    const at = left + (right - left) * (x[place] - limits[0]) / (limits[1] - limits[0]);
    cursor.setAttribute("x1", at);
    cursor.setAttribute("x2", at);
    cursor.setAttribute("visibility", "visible");
    const shown = series.filter((each) => place < each.y.length).map((each) => `${series.length > 1 ? `${each.name}: ` : ""}${readable(each.y[place])}`);
    values.textContent = `${label} ${x[place]}: ${shown.join(", ")}`;
  }

  svg.addEventListener("pointermove", (event) => {
    const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    const value = limits[0] + (limits[1] - limits[0]) * (point.x - left) / (right - left);
    let nearest = 0;
    for (let each = 1; each < x.length; each += 1) if (Math.abs(x[each] - value) < Math.abs(x[nearest] - value)) nearest = each;
    show(nearest);
  });
  svg.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: Math.ceil(x.length / 10), PageDown: -Math.ceil(x.length / 10) }[event.key];
    if (step) { event.preventDefault(); show(place + step); }
    if (event.key === "Home" || event.key === "End") { event.preventDefault(); show(event.key === "Home" ? 0 : x.length - 1); }
  });
}
