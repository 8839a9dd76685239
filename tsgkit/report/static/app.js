// The page of `tsgkit serve`: sends requests to /api/parse and shows the responses. Text of a response is inserted as text
// only, never as HTML.
"use strict";

const find = (id) => document.getElementById(id);
const state = { answer: null, rank: 0, view: "tree", asked: null, running: null };

// ---- helpers ---------------------------------------------------------------------------------------------

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

function percent(share) {
  if (share === null || share === undefined) return "–";
  if (share > 0 && share < 0.0005) return "<0.1 %";
  return `${(100 * share).toFixed(1)} %`;
}

function showProblem(message) {
  find("problem").textContent = message;
  find("problem").hidden = !message;
}

const say = (message) => { find("status").textContent = message; };
const tree = () => state.answer.trees[state.rank];
const wordsOf = (start, end) => state.answer.words.slice(start, end).join(" ");

// ---- asking ----------------------------------------------------------------------------------------------

async function ask(question) {
  if (state.running) state.running.abort();
  const running = new AbortController();
  state.running = running;
  state.asked = question;
  showProblem("");
  say("Parsing …");
  try {
    const body = { ...question, k: Number(find("count").value), model: Number(find("model").value || 0) };
    const response = await fetch("/api/parse", {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body), signal: running.signal,
    });
    const answer = await response.json();
    if (!response.ok) throw new Error(answer.error.message);
    state.answer = answer;
    state.rank = 0;
    showAnswer();
    remember(question);
  } catch (error) {
    if (running.signal.aborted) return;
    say("");
    showProblem(error instanceof TypeError ? "The server does not respond. Is it still running?" : error.message);
  } finally {
    if (state.running === running) state.running = null;
  }
}

// The sentence is part of the address, so that a reload or a bookmark restores it.
function remember(question) {
  const value = question.words ? `w=${encodeURIComponent(question.words.join(" "))}` : `s=${encodeURIComponent(question.text)}`;
  history.replaceState(null, "", `#${value}`);
}

function recall() {
  const match = /^#([sw])=(.*)$/.exec(location.hash);
  if (!match) return;
  let value;
  try { value = decodeURIComponent(match[2]); } catch { return; }
  find("sentence").value = value;
  ask(match[1] === "w" ? { words: split(value) } : { text: value });
}

const split = (text) => text.split(/[ \t\r\n\f\v]+/).filter((word) => word);

// ---- showing ---------------------------------------------------------------------------------------------

function showAnswer() {
  const { answer } = state;
  find("result").hidden = false;
  find("tokens-form").hidden = false;
  find("tokens").value = answer.words.join(" ");
  const kinds = {
    coarse: "the model cannot parse this sentence; this is the best tree of a coarser grammar",
    glued: "no grammar covers the whole sentence; these are partial parses side by side",
    flat: "the sentence is too long for the chart; this tree has tags only",
  };
  const note = answer.fallback ? `Fallback tree: ${kinds[answer.fallback] || answer.fallback}.` : "";
  say(`${answer.words.length} word${answer.words.length === 1 ? "" : "s"}, ${answer.seconds.toFixed(3)} s. ${note}`);
  showList();
  showTree();
}

function showList() {
  const list = find("trees");
  list.replaceChildren();
  state.answer.trees.forEach((each, rank) => {
    const choice = make("input", { type: "radio", name: "rank", value: rank, id: `rank-${rank}` });
    choice.checked = rank === state.rank;
    choice.addEventListener("change", () => { state.rank = rank; showTree(); });
    const share = make("span", { class: "share", title: `log probability ${each.log_probability}` }, percent(each.probability));
    list.append(make("label", {}, choice, share, make("code", {}, each.brackets)));
  });
}

function showTree() {
  find("node-section").hidden = true;
  showPicture();
  showWhy();
}

function showPicture() {
  const derived = state.view === "derivation";
  for (const name of ["tree", "derivation"]) {
    const tab = find(`tab-${name}`);
    tab.setAttribute("aria-selected", String(name === state.view));
    tab.tabIndex = name === state.view ? 0 : -1;
  }
  const picture = find("picture");
  picture.setAttribute("aria-labelledby", `tab-${state.view}`);
  find("copied").hidden = true;
  if (derived && !tree().derivation) {
    picture.replaceChildren(make("p", {}, `No derivation: ${tree().why_not}.`));
    find("hint").textContent = "";
    return;
  }
  const source = derived ? tree().derivation.svg : tree().svg;
  const drawn = new DOMParser().parseFromString(source, "image/svg+xml").documentElement;
  picture.replaceChildren(document.importNode(drawn, true));
  find("hint").textContent = derived
    ? "Each fragment has its own colour; ○ marks a substitution site, ⊕ an insertion, with a dashed line to its foot. Select a node to find its fragment below."
    : "Small numbers are posterior probabilities. Select a node to see its alternatives.";
  for (const node of picture.querySelectorAll(".node[role=button]")) {
    node.addEventListener("click", () => chooseNode(node));
    node.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); chooseNode(node); }
    });
  }
}

function chooseNode(node) {
  for (const other of find("picture").querySelectorAll(".chosen")) other.classList.remove("chosen");
  node.classList.add("chosen");
  if (state.view === "derivation") chooseFragment(Number(node.dataset.step));
  else showNode(tree().nodes[Number(node.dataset.node)]);
}

// ---- alternatives to a node ------------------------------------------------------------------------------

function showNode(node) {
  const others = state.answer.alternatives.filter((each) =>
    !(each.label === node.label && each.start === node.start && each.end === node.end));
  const inside = (a, b) => a.start >= b.start && a.end <= b.end;
  const groups = [
    ["Same span, other labels", others.filter((each) => each.start === node.start && each.end === node.end)],
    [`Other ${node.label} with the same start or end`, others.filter((each) => each.label === node.label
      && (each.start === node.start) !== (each.end === node.end))],
    ["Crossing brackets", others.filter((each) => each.start < node.end && node.start < each.end
      && !inside(each, node) && !inside(node, each))],
  ];
  const body = find("node");
  find("node-title").textContent = `${node.label} “${wordsOf(node.start, node.end)}”: posterior ${percent(node.posterior)}`;
  body.replaceChildren();
  for (const [title, found] of groups) {
    if (!found.length) continue;
    const rows = found.slice(0, 8).map((each) => make("tr", {}, make("td", { class: "number" }, percent(each.posterior)),
      make("td", {}, each.label), make("td", {}, wordsOf(each.start, each.end))));
    const head = make("tr", {}, ...["", "Label", "Words"].map((name) => make("th", { scope: "col" }, name)));
    body.append(make("h3", {}, title), make("div", {}, make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows))));
  }
  if (!body.children.length) body.append(make("p", {}, "No alternative has a posterior probability of one percent or more."));
  find("node-section").hidden = false;
}

// ---- the fragments ---------------------------------------------------------------------------------------

function showWhy() {
  const list = find("why");
  const { derivation } = tree();
  list.replaceChildren();
  find("why-note").textContent = derivation
    ? (derivation.measure === "count"
      ? "Count of each fragment in the last sample, with occurrences in training sentences; 0 if it comes from the base distribution or from an earlier sample."
      : "Rules and their probabilities.")
    : `No derivation: ${tree().why_not}.`;
  if (!derivation) return;
  derivation.fragments.forEach((each, number) => {
    const count = derivation.measure === "count" ? `${each.count} ×` : each.weight.toPrecision(3);
    const item = make("li", { class: `hue${each.hue}`, "data-step": number, id: `fragment-${number}`, tabindex: "-1" },
      make("span", { class: "count" }, `${each.inserted ? "inserted, " : ""}${count}`), make("code", {}, each.fragment));
    if (each.examples.length) item.append(make("ul", {}, ...each.examples.map(exampleItem)));
    item.addEventListener("mouseenter", () => light(number));
    item.addEventListener("mouseleave", () => light(-1));
    list.append(item);
  });
}

function exampleItem({ words, start, end }) {
  const part = (from, to) => words.slice(from, to).join(" ");
  return make("li", {}, `${part(0, start)} `, make("mark", {}, part(start, end)), ` ${part(end)}`);
}

function light(step) {
  for (const element of document.querySelectorAll("#picture .halo, #why > li")) {
    element.classList.toggle("lit", Number(element.dataset.step) === step);
  }
}

function chooseFragment(step) {
  light(step);
  const item = find(`fragment-${step}`);
  item.scrollIntoView({ block: "nearest" });
  item.focus({ preventScroll: true });
}

// ---- copying ---------------------------------------------------------------------------------------------

async function standalone() {
  const style = await (await fetch("/tree.css")).text();
  const picture = find("picture").querySelector("svg");
  if (!picture) throw new Error("there is no drawing");
  const copy = picture.cloneNode(true);
  for (const node of copy.querySelectorAll("[tabindex]")) { node.removeAttribute("tabindex"); node.removeAttribute("role"); }
  for (const node of copy.querySelectorAll(".chosen, .lit")) node.classList.remove("chosen", "lit");
  const text = new XMLSerializer().serializeToString(copy);
  const cut = text.indexOf(">") + 1;
  return `${text.slice(0, cut)}<style>${style}</style><rect class="paper" width="100%" height="100%" rx="6" fill="#ffffff"/>${text.slice(cut)}`;
}

async function toPng(svg) {
  const address = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
  try {
    const image = new Image();
    image.src = address;
    await image.decode();
    const scale = 2;
    const canvas = make("canvas", { width: Math.ceil(image.width * scale), height: Math.ceil(image.height * scale) });
    const context = canvas.getContext("2d");
    context.scale(scale, scale);
    context.drawImage(image, 0, 0);
    return await new Promise((resolve, reject) => {
      canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("the image is too large"))), "image/png");
    });
  } finally {
    URL.revokeObjectURL(address);
  }
}

function download(blob, name) {
  const address = URL.createObjectURL(blob);
  const link = make("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    say("Copied.");
  } catch {
    // The browser does not allow it: show the text, selected, for copying by hand.
    const area = find("copied");
    area.hidden = false;
    area.value = text;
    area.focus();
    area.select();
    say("Press Ctrl-C to copy the text.");
  }
}

async function copyAs(form) {
  try {
    if (form === "brackets") await copyText(tree().brackets);
    else if (form === "latex") await copyText(state.view === "derivation" && tree().derivation ? tree().derivation.latex : tree().latex);
    else if (form === "svg") await copyText(await standalone());
    else {
      const png = await toPng(await standalone());
      try {
        await navigator.clipboard.write([new ClipboardItem({ "image/png": png })]);
        say("Copied.");
      } catch {
        download(png, "tree.png");
        say("Saved as tree.png.");
      }
    }
  } catch (error) {
    showProblem(`Not copied: ${error.message}.`);
  }
}

// ---- start-up --------------------------------------------------------------------------------------------

function showView(view) {
  state.view = view;
  find("node-section").hidden = true;
  showPicture();
}

async function begin() {
  find("ask").addEventListener("submit", (event) => {
    event.preventDefault();
    ask({ text: find("sentence").value });
  });
  find("tokens-form").addEventListener("submit", (event) => {
    event.preventDefault();
    ask({ words: split(find("tokens").value) });
  });
  for (const name of ["count", "model"]) find(name).addEventListener("change", () => { if (state.asked) ask(state.asked); });
  find("fit").addEventListener("change", (event) => find("picture").classList.toggle("fit", event.target.checked));
  for (const view of ["tree", "derivation"]) {
    const tab = find(`tab-${view}`);
    tab.addEventListener("click", () => showView(view));
    tab.addEventListener("keydown", (event) => {
      if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
      showView(view === "tree" ? "derivation" : "tree");
      find(`tab-${state.view}`).focus();
    });
  }
  for (const button of document.querySelectorAll("[data-copy]")) {
    button.addEventListener("click", () => copyAs(button.dataset.copy));
  }
  try {
    const about = await (await fetch("/api/about")).json();
    find("models").textContent = about.models.map((each) => `${each.name} (${each.kind})`).join(" × ");
    about.models.forEach((each, number) => find("model").append(make("option", { value: number }, each.name)));
    find("model-choice").hidden = about.models.length < 2;
  } catch {
    showProblem("The server does not respond. Is it still running?");
  }
  recall();
}

begin();
