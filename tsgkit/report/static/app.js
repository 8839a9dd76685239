// The page of `tsgkit serve`: sends requests to /api/parse and shows the responses. Text of a response is inserted as text
// only, never as HTML.
"use strict";

const find = (id) => document.getElementById(id);
const VIEWS = ["tree", "derivation", "dependencies", "gold"];
// `items` are the sentences that were asked for, each with its question and, when it has come, its answer or problem.
const state = { items: [], item: null, answer: null, rank: 0, view: "tree", running: null };

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

// Sentences are sent one after the other, so that the limits of the server are those of each.
async function ask(questions) {
  if (state.running) state.running.abort();
  const running = new AbortController();
  state.running = running;
  state.items = questions.map((question) => ({ question, answer: null, problem: "" }));
  clearAnswer();
  showSentences();
  find("examples-section").hidden = true;
  remember(questions);
  for (const item of state.items) {
    say(state.items.length > 1 ? `Parsing sentence ${state.items.indexOf(item) + 1} of ${state.items.length} …` : "Parsing …");
    await askOne(item, running.signal);
    if (running.signal.aborted) return;
    showSentences();
    if (state.item === null || state.item === item) choose(item);
  }
  if (state.running === running) state.running = null;
  if (state.items.length > 1) {
    const failed = state.items.filter((item) => item.problem).length;
    say(`${state.items.length} sentences${failed ? `, ${failed} with an error` : ""}. ${state.answer ? summary(state.answer) : ""}`);
  }
}

async function askOne(item, signal) {
  try {
    const gold = item.question.gold || find("gold").value.trim();
    const body = { ...item.question, k: Number(find("count").value), model: Number(find("model").value || 0) };
    if (gold) body.gold = gold;
    const response = await fetch("/api/parse", {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body), signal,
    });
    const answer = await response.json();
    if (!response.ok) throw new Error(answer.error.message);
    item.answer = answer;
  } catch (error) {
    if (signal.aborted) return;
    item.problem = error instanceof TypeError ? "The server does not respond. Is it still running?" : error.message;
  }
}

// Nothing of an earlier answer stays: neither a tree beside an error, nor a node of another tree.
function clearAnswer() {
  state.item = null;
  state.answer = null;
  showProblem("");
  for (const id of ["result", "tokens-form", "node-section"]) find(id).hidden = true;
  for (const id of ["picture", "trees", "why"]) find(id).replaceChildren();
}

function choose(item) {
  clearAnswer();
  state.item = item;
  state.answer = item.answer;
  showSentences();
  if (item.problem) {
    say("");
    showProblem(item.problem);
  } else if (item.answer) {
    state.rank = 0;
    showAnswer();
  }
}

// The sentences are part of the address, so that a reload or a bookmark restores them.
function remember(questions) {
  const [only] = questions;
  const value = questions.length === 1 && only.words
    ? `w=${encodeURIComponent(only.words.join(" "))}`
    : `s=${encodeURIComponent(questions.map(textOf).join("\n"))}`;
  history.replaceState(null, "", `#${value}`);
}

function recall() {
  const match = /^#([sw])=(.*)$/.exec(location.hash);
  if (!match) return;
  let value;
  try { value = decodeURIComponent(match[2]); } catch { return; }
  find("sentence").value = value;
  ask(match[1] === "w" ? [{ words: split(value) }] : sentencesOf(value));
}

function sentencesOf(text) {
  const lines = text.split("\n").filter((line) => line.trim());
  return lines.length ? lines.map((line) => ({ text: line })) : [{ text }];
}

const textOf = (question) => (question.words ? question.words.join(" ") : question.text);
const split = (text) => text.split(/[ \t\r\n\f\v]+/).filter((word) => word);

// ---- showing ---------------------------------------------------------------------------------------------

function showSentences() {
  find("sentences-section").hidden = state.items.length < 2;
  const focused = document.activeElement && document.activeElement.dataset.sentence;
  find("sentences").replaceChildren(...state.items.map((item, number) => {
    const words = item.answer ? item.answer.words.join(" ") : textOf(item.question);
    const note = item.problem ? "error" : item.answer ? score(item.answer) : "waiting";
    const button = make("button", { class: "second", type: "button", "data-sentence": number }, words,
      make("span", { class: "quiet" }, ` ${note}`));
    if (item === state.item) button.setAttribute("aria-current", "true");
    button.addEventListener("click", () => choose(item));
    return make("li", {}, button);
  }));
  if (focused) document.querySelector(`[data-sentence="${focused}"]`)?.focus();
}

function score(answer) {
  if (answer.gold) return `F1 ${answer.trees[0].f1.toFixed(1)}`;
  return answer.fallback ? "fallback tree" : `probability ${percent(answer.trees[0].probability)}`;
}

function summary(answer) {
  const kinds = {
    coarse: "the model cannot parse this sentence; this is the best tree of a coarser grammar",
    glued: "no grammar covers the whole sentence; these are partial parses side by side",
    flat: "the sentence is too long for the chart; this tree has tags only",
    timeout: "the sentence takes too long; this tree has tags only",
  };
  const note = answer.fallback ? `Fallback tree: ${kinds[answer.fallback] || answer.fallback}.` : "";
  return `${answer.words.length} word${answer.words.length === 1 ? "" : "s"}, ${answer.seconds.toFixed(3)} s. ${note}`;
}

// Several sentences in one line are parsed as one.
function hintOn(question) {
  const isSeveral = question.text && /[.!?]["'”’)\]]*\s+["'“‘(\[]*\p{Lu}/u.test(question.text);
  return isSeveral ? "A line is one sentence: press Shift-Enter where the next one begins." : "";
}

function showAnswer() {
  const { answer } = state;
  find("result").hidden = false;
  find("tokens-form").hidden = false;
  find("tokens").value = answer.words.join(" ");
  find("tab-gold").hidden = !answer.gold;
  if (!answer.gold && state.view === "gold") state.view = "tree";
  say(summary(answer) + hintOn(state.item.question));
  showList();
  showTree();
}

// In the order of the parsing objective, whose share falls from tree to tree; the probability need not.
function showList() {
  const { trees } = state.answer;
  const several = trees.length > 1;
  const likeliest = trees.reduce((best, each, rank) => ((each.probability ?? -1) > (trees[best].probability ?? -1) ? rank : best), 0);
  const odds = state.about?.span_labels ? " and of the odds of its labels, as a model of the words around each phrase sees them" : "";
  find("trees-note").textContent = `Share: the tree's part of what the parser maximises, the product of the probabilities of its rules${odds}, over all trees. `
    + `Probability: of the whole tree given the words.${several ? " The parser chooses the tree with the largest share, whose parts are right most often. ★ marks the most probable tree." : ""}`;
  const head = make("div", { class: "head quiet", "aria-hidden": "true" }, make("span"), make("span", {}, "share"), make("span", {}, "probability"));
  find("trees").replaceChildren(head, ...trees.map((each, rank) => {
    const choice = make("input", { type: "radio", name: "rank", value: rank, id: `rank-${rank}` });
    choice.checked = rank === state.rank;
    choice.addEventListener("change", () => { state.rank = rank; showTree(); });
    const share = make("span", { class: "share", title: `score ${each.score}` }, make("span", { class: "unseen" }, "share "), percent(each.share));
    const probability = make("span", { class: "probability", title: `log probability ${each.log_probability}` }, make("span", { class: "unseen" }, "probability "), percent(each.probability));
    const best = make("span", { class: "best" }, ...(several && rank === likeliest ? [make("span", { "aria-hidden": "true" }, "★"), make("span", { class: "unseen" }, "the most probable tree")] : []));
    const f1 = state.answer.gold ? [make("span", { class: "f1" }, `F1 ${each.f1.toFixed(1)}`)] : [];
    return make("label", state.answer.gold ? { class: "scored" } : {}, choice, share, probability, best, ...f1, make("code", {}, each.brackets));
  }));
}

function showTree() {
  find("node-section").hidden = true;
  showPicture();
  showWhy();
}

function showPicture() {
  const derived = state.view === "derivation";
  for (const name of VIEWS) {
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
  const drawn = new DOMParser().parseFromString(drawings()[state.view].svg, "image/svg+xml").documentElement;
  picture.replaceChildren(document.importNode(drawn, true));
  find("hint").textContent = {
    tree: `Small numbers are posterior probabilities.${state.answer.gold ? " ✗ marks brackets that the gold tree does not have." : ""} Select a node to see its alternatives.`,
    derivation: "Each fragment has its own colour; ○ marks a substitution site, ⊕ an insertion, with a dashed line to its foot. Select a node to find its fragment below.",
    dependencies: "An arrow goes from every head to its dependent, with the label of the phrase. Heads are found in the tree by head rules.",
    gold: `The gold tree; ○ marks brackets that the parser's choice${state.answer.trees.length > 1 ? ", the first tree," : ""} misses.`,
  }[state.view];
  showScore();
  showDependencies();
  for (const node of picture.querySelectorAll(".node[role=button]")) {
    node.addEventListener("click", () => chooseNode(node));
    node.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); chooseNode(node); }
    });
  }
}

// What each view shows: its drawing, and forms to copy.
const drawings = () => ({
  tree: tree(), derivation: tree().derivation, dependencies: tree().dependencies, gold: state.answer.gold,
});

// The arcs are one picture; their table can be read line by line.
function showDependencies() {
  const { words } = tree().dependencies;
  find("dependencies").hidden = state.view !== "dependencies";
  const head = make("tr", {}, ...["Number", "Word", "Tag", "Head", "Label"].map((name) => make("th", { scope: "col" }, name)));
  const rows = words.map((each, place) => make("tr", {}, make("td", { class: "number" }, String(place + 1)),
    make("td", {}, each.word), make("td", {}, each.tag),
    make("td", {}, each.head ? `${each.head} ${words[each.head - 1].word}` : "–"), make("td", {}, each.label)));
  find("dependencies").querySelector("div").replaceChildren(make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows)));
}

// How the tree that is shown compares with the gold tree.
function showScore() {
  const { gold } = state.answer;
  find("gold-score").hidden = !gold;
  if (!gold) return;
  const { f1, recall, precision } = tree();
  find("gold-score").textContent = f1 === 100
    ? "The tree has the brackets of the gold tree."
    : `Compared with the gold tree: F1 ${f1.toFixed(2)}, recall ${recall.toFixed(2)}, precision ${precision.toFixed(2)}.`;
}

function chooseNode(node) {
  for (const other of find("picture").querySelectorAll(".chosen")) other.classList.remove("chosen");
  node.classList.add("chosen");
  if (state.view === "gold") return;
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
    const shown = drawings()[state.view] || tree();
    if (form === "brackets") await copyText(shown.brackets || tree().brackets);
    else if (form === "conllu") await copyText(tree().dependencies.conllu);
    else if (form === "latex") await copyText(shown.latex);
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

// One sentence of several, with other words.
function changeWords(words) {
  const item = state.item;
  ask(state.items.map((each) => (each === item ? { words } : each.question)));
}

function showExamples({ examples, source }) {
  if (!examples.length || state.items.length) return;
  find("examples-note").textContent = source === "training"
    ? "Training sentences: the model has seen them. Each is compared with its gold tree."
    : `Sentences of ${source}, each compared with its gold tree.`;
  find("examples").replaceChildren(...examples.map((each) => {
    const button = make("button", { class: "second", type: "button" }, each.words.join(" "));
    button.addEventListener("click", () => {
      find("sentence").value = each.words.join(" ");
      ask([{ words: each.words, gold: each.gold }]);
      find("sentence").focus();
    });
    return make("li", {}, button);
  }));
  find("examples-section").hidden = false;
}

async function begin() {
  find("ask").addEventListener("submit", (event) => {
    event.preventDefault();
    ask(sentencesOf(find("sentence").value));
  });
  find("sentence").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); find("ask").requestSubmit(); }
  });
  find("tokens-form").addEventListener("submit", (event) => {
    event.preventDefault();
    changeWords(split(find("tokens").value));
  });
  for (const name of ["count", "model", "gold"]) find(name).addEventListener("change", () => { if (state.items.length) ask(state.items.map((item) => item.question)); });
  find("fit").addEventListener("change", (event) => find("picture").classList.toggle("fit", event.target.checked));
  for (const view of VIEWS) {
    const tab = find(`tab-${view}`);
    tab.addEventListener("click", () => showView(view));
    tab.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!step) return;
      const shown = VIEWS.filter((each) => !find(`tab-${each}`).hidden);
      showView(shown[(shown.indexOf(view) + step + shown.length) % shown.length]);
      find(`tab-${state.view}`).focus();
    });
  }
  for (const button of document.querySelectorAll("[data-copy]")) {
    button.addEventListener("click", () => copyAs(button.dataset.copy));
  }
  try {
    const about = await (await fetch("/api/about")).json();
    state.about = about;
    find("models").textContent = about.models.map((each) => `${each.name} (${each.kind})`).join(" × ");
    about.models.forEach((each, number) => find("model").append(make("option", { value: number }, each.name)));
    find("model-choice").hidden = about.models.length < 2;
    find("tokenization").textContent = `Text is cut into words by ${about.tokenization}.`;
    showExamples(await (await fetch("/api/examples")).json());
  } catch {
    showProblem("The server does not respond. Is it still running?");
  }
  recall();
}

begin();
