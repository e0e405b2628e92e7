const PATIENCE_MS = 1000; // how long Python may take before the page says that it is waiting

function render({ model, el }) {
  prepare(el, "labkit-explorer");
  const headline = element("strong", { role: "status" });
  const ways = element("div"); // why not, and what to choose instead: read on demand
  const verdict = element("div", { className: "labkit-verdict" }, headline, ways);
  const waiting = element("p", { className: "labkit-waiting", role: "status", hidden: true });
  waiting.textContent =
    "Python has not answered yet: it is busy with another cell, or its kernel has stopped. " +
    "What you see below is its last answer.";
  const hint = element("p", { className: "labkit-hint" });
  const figure = element("div", { className: "labkit-scroll" });
  const chart = element("div");
  const sentences = element("ul");
  const commands = element("div");
  const origin = element("p", { className: "labkit-hint" });
  const controls = model.get("controls").map((control) => makeControl(control, choose));
  let drawn; // the answer that the page shows
  let timer;

  function choose(changed) {
    model.set("choice", { ...model.get("choice"), ...changed });
    model.save_changes();
  }

  function show() {
    const choice = model.get("choice");
    for (const control of controls) control.show(choice[control.name]);
    const answer = model.get("answers")[controls.map(({ name }) => choice[name]).join(",")];
    clearTimeout(timer);
    waiting.hidden = true;
    if (answer) draw(answer);
    else timer = setTimeout(() => (waiting.hidden = false), PATIENCE_MS);
  }

  function draw(view) {
    const text = JSON.stringify(view);
    if (text === drawn) return;
    drawn = text;
    verdict.classList.toggle("labkit-bad", !view.is_good);
    const said = `${view.is_good ? "✓" : "✗"} ${view.headline}`;
    if (headline.textContent !== said) headline.textContent = said; // announced where it changes
    ways.replaceChildren(
      ...(view.reasons.length ? [list(view.reasons)] : []),
      ...view.jumps.map((jump) => jumpButton(jump, choose, controls)),
    );
    hint.textContent = view.hint;
    figure.replaceChildren(...(view.rows.length ? [drawTable(view), drawLegend(view)] : []));
    chart.replaceChildren(...(view.chart ? [drawChart(view.chart)] : []));
    sentences.replaceChildren(...list(view.sentences).children);
    commands.replaceChildren(...view.commands.flatMap(drawCommand));
    origin.textContent = view.origin;
  }

  const panel = element("div", { className: "labkit-controls" });
  panel.append(...controls.map((control) => control.box));
  el.append(panel, hint, waiting, verdict, figure, chart, sentences, commands, origin);
  model.on("change:choice", show);
  model.on("change:answers", show);
  show();
  replaceTwin(el);
  return () => {
    clearTimeout(timer);
    model.off("change:choice", show);
    model.off("change:answers", show);
  };
}

/** A labelled control: its box, the input inside, and how to show an index. */
function makeControl({ name, label, kind, options }, choose) {
  if (kind === "menu") {
    const input = element("select");
    input.append(...options.map((text, i) => element("option", { value: i }, text)));
    input.addEventListener("change", () => choose({ [name]: Number(input.value) }));
    const box = element("label", {}, element("span", {}, label), input);
    return { name, input, box, show: (index) => (input.value = index) };
  }
  if (kind === "tick") {
    const input = element("input", { type: "checkbox" });
    input.addEventListener("change", () => choose({ [name]: Number(input.checked) }));
    const words = element("span", {}, label);
    const box = element("label", { className: "labkit-tick" }, input, words);
    return { name, input, box, show: (index) => (input.checked = index === 1) };
  }
  const input = element("input", { type: "range", min: 0, max: options.length - 1, step: 1 });
  // A screen reader has the value from the slider itself.
  const output = element("output", { "aria-hidden": "true" });
  input.addEventListener("input", () => choose({ [name]: Number(input.value) }));
  const show = (index) => {
    input.value = index;
    input.setAttribute("aria-valuetext", options[index]);
    output.textContent = options[index];
  };
  return { name, input, box: element("label", {}, element("span", {}, label), input, output), show };
}

function jumpButton({ text, choice }, choose, controls) {
  const button = element("button", { type: "button" }, text);
  button.addEventListener("click", () => {
    choose(choice);
    controls.find(({ name }) => name in choice)?.input.focus();
  });
  return button;
}

function drawCommand([name, text]) {
  return [element("p", { className: "labkit-hint" }, name), element("pre", { tabIndex: 0 }, text)];
}

function list(lines) {
  return element("ul", {}, ...lines.map((line) => element("li", {}, line)));
}

function drawTable({ caption, columns, rows }) {
  const heads = columns.map(([heading, below]) =>
    element("th", { scope: "col" }, heading, element("small", {}, below)),
  );
  const body = rows.map(([name, cells]) =>
    element("tr", {}, element("th", { scope: "row" }, name), ...cells.map(drawCell)),
  );
  const table = element(
    "table",
    { className: "labkit-figure" },
    element("caption", {}, caption),
    element("thead", {}, element("tr", {}, element("td"), ...heads)),
    element("tbody", {}, ...body),
  );
  return table;
}

function drawCell({ text, bars, note }) {
  const words = element("span", { className: "labkit-words" }, text);
  if (note) words.append(" ", element("small", {}, note));
  if (!bars.length) return element("td", {}, words);
  const track = element("span", { className: "labkit-track", "aria-hidden": "true" });
  for (const bar of bars) {
    const part = element("span", { className: `labkit-bar labkit-look-${bar.look}` });
    part.style.left = `${bar.left}%`;
    part.style.width = `${bar.width}%`;
    track.append(part);
  }
  return element("td", {}, words, track);
}

function drawLegend({ legend }) {
  const entries = legend.map(([look, name]) =>
    element("span", {}, element("i", { className: `labkit-look-${look}` }), name),
  );
  return element("p", { className: "labkit-legend" }, ...entries);
}

export default { render };
