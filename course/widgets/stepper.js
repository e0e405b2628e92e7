const STEP_MS = 2000; // from one step to the next while it plays
const TRAVEL_MS = 900; // how long a message is on its way
const SIZE = 320; // the picture's, in its own units
const NODE = 21;
const MOST_BESIDE = 4; // chunks that fit a table beside the picture
const GAP = 4; // between an arrow's end and a rank

function render({ model, el }) {
  prepare(el, "labkit-stepper");
  const run = model.get("run");
  const last = run.positions.length - 1;
  const still = window.matchMedia("(prefers-reduced-motion: reduce)");
  let shown = null; // the position that the page shows
  let timer = null; // while it plays
  let arrival = null; // while messages are on their way

  const back = button("Back", () => go(model.get("position") - 1));
  const next = button("Next", () => go(model.get("position") + 1));
  const play = button("Play", () => (timer ? pause() : start()));
  const slider = element("input", { type: "range", min: 0, max: last, step: 1 });
  const output = element("output", { "aria-hidden": "true" });
  const headline = element("p", { className: "labkit-headline", role: "status" });
  const messages = element("ul");
  const picture = svgElement("svg", { viewBox: `0 0 ${SIZE} ${SIZE}`, role: "img" });
  const table = element("table", { className: "labkit-holds" });

  function button(text, act) {
    const made = element("button", { type: "button" }, text);
    made.addEventListener("click", act);
    return made;
  }

  const move = (position) => {
    model.set("position", Math.max(0, Math.min(last, position)));
    model.save_changes();
  };
  const go = (position) => {
    pause();
    move(position);
  };
  const start = () => {
    if (model.get("position") === last) move(0);
    timer = setInterval(() => {
      move(model.get("position") + 1);
      if (model.get("position") === last) pause();
    }, STEP_MS);
    if (last > 0) move(model.get("position") + 1);
    if (model.get("position") === last) pause();
    name();
  };
  const pause = () => {
    clearInterval(timer);
    timer = null;
    name();
  };
  const name = () => {
    const atEnd = model.get("position") === last;
    play.textContent = timer ? "Pause" : atEnd ? "Play again" : "Play";
    play.disabled = last === 0;
    // A disabled button would lose the focus of somebody who steps by keyboard.
    back.setAttribute("aria-disabled", model.get("position") === 0);
    next.setAttribute("aria-disabled", atEnd);
  };

  const show = () => {
    const number = model.get("position");
    if (number === shown) return;
    const position = run.positions[number];
    const travels = shown !== null && number === shown + 1 && !still.matches;
    const before = run.positions[shown];
    shown = number;
    arrival?.();
    slider.value = number;
    slider.setAttribute("aria-valuetext", position.name);
    output.textContent = `${number} of ${last}`;
    headline.textContent = position.headline;
    messages.replaceChildren(
      ...position.sent.map(({ src, dst, cargo, then }) =>
        element("li", {}, `rank ${src} to rank ${dst}: ${cargo}, ${then}`),
      ),
      ...(position.sent.length ? [] : [element("li", {}, "Nothing has been sent yet.")]),
    );
    drawRing(picture, run, position);
    name();
    drawHolds(table, run, travels ? before : position);
    if (travels) {
      const stop = send(picture, position.sent, run.ranks);
      const done = setTimeout(() => arrival(), TRAVEL_MS);
      arrival = () => {
        clearTimeout(done);
        stop();
        arrival = null;
        drawHolds(table, run, run.positions[shown]);
      };
    }
  };

  slider.addEventListener("input", () => go(Number(slider.value)));
  el.addEventListener("keydown", (event) => {
    const turn = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!turn || event.target === slider) return;
    go(model.get("position") + turn);
    event.preventDefault();
  });
  el.append(
    element("p", { className: "labkit-stepper-title" }, run.title),
    element("div", { className: "labkit-stepper-buttons" }, back, play, next),
    element("label", {}, element("span", {}, "Step"), slider, output),
    headline,
    element(
      "div",
      { className: `labkit-stepper-frame${run.chunks > MOST_BESIDE ? " labkit-wide" : ""}` },
      picture,
      element("div", { className: "labkit-scroll" }, table, legend(run)),
      messages,
    ),
  );
  model.on("change:position", show);
  show();
  replaceTwin(el);
  return () => {
    pause();
    arrival?.();
    model.off("change:position", show);
  };
}

/** The centre of a rank on the ring: rank 0 on top, the others clockwise. */
function place(rank, ranks) {
  const turn = (2 * Math.PI * rank) / ranks;
  const radius = SIZE / 2 - NODE - 8;
  return { x: SIZE / 2 + radius * Math.sin(turn), y: SIZE / 2 - radius * Math.cos(turn) };
}

/** An arrow's two ends, beside the line between the centres where messages go both ways. */
function ends({ src, dst }, sent, ranks) {
  const [from, to] = [place(src, ranks), place(dst, ranks)];
  const length = Math.hypot(to.x - from.x, to.y - from.y);
  const [dx, dy] = [(to.x - from.x) / length, (to.y - from.y) / length];
  const isBothWays = sent.some((other) => other.src === dst && other.dst === src);
  const aside = isBothWays ? 11 : 0;
  const at = (along) => ({
    x: from.x + dx * along - dy * aside,
    y: from.y + dy * along + dx * aside,
  });
  return { at, start: at(NODE + GAP), stop: at(length - NODE - GAP), length, dx, dy };
}

function drawRing(picture, { ranks, title }, position) {
  const arrows = position.sent.map((one) => arrow(one, position.sent, ranks));
  const nodes = Array.from({ length: ranks }, (_, rank) => {
    const { x, y } = place(rank, ranks);
    const text = svgElement("text", { x, y, dy: "0.35em", "text-anchor": "middle" });
    text.textContent = rank;
    return svgElement("g", {}, svgElement("circle", { cx: x, cy: y, r: NODE }), text);
  });
  picture.setAttribute("aria-label", `${title}, ${position.name}: the messages between ranks`);
  const dots = svgElement("g", { class: "labkit-dots" });
  picture.replaceChildren(
    ...arrows.map(({ line }) => line), ...nodes, ...arrows.map(({ label }) => label), dots,
  );
}

function arrow(one, sent, ranks) {
  const { at, start, stop, length, dx, dy } = ends(one, sent, ranks);
  const [x, y] = [stop.x - 9 * dx, stop.y - 9 * dy];
  const head = [[stop.x, stop.y], [x - 5 * dy, y + 5 * dx], [x + 5 * dy, y - 5 * dx]];
  const line = svgElement(
    "g",
    { class: "labkit-message" },
    svgElement("line", { x1: start.x, y1: start.y, x2: x, y2: y }),
    svgElement("polygon", { points: head.map((point) => point.join()).join(" ") }),
  );
  if (!one.label) return { line, label: "" };
  const middle = at(length * (ranks > 3 ? 0.42 : 0.5));
  const width = 8 + 7.2 * one.label.length;
  const words = svgElement("text", { ...middle, dy: "0.35em", "text-anchor": "middle" });
  words.textContent = one.label;
  const box = { x: middle.x - width / 2, y: middle.y - 9, width, height: 18, rx: 4 };
  const label = svgElement("g", { class: "labkit-cargo" }, svgElement("rect", box), words);
  return { line, label };
}

/** Dots that travel along the arrows; returns what takes them away. */
function send(picture, sent, ranks) {
  const layer = picture.querySelector(".labkit-dots");
  for (const one of sent) {
    const { start, stop } = ends(one, sent, ranks);
    const dot = svgElement("circle", { r: 7 });
    layer.append(dot);
    dot.animate(
      [start, stop].map(({ x, y }) => ({ transform: `translate(${x}px, ${y}px)` })),
      { duration: TRAVEL_MS, easing: "ease-in-out", fill: "both" },
    );
  }
  return () => layer.replaceChildren();
}

function drawHolds(table, { ranks, chunks, is_sum }, position) {
  const numbers = Array.from({ length: chunks }, (_, chunk) => chunk);
  const heads = numbers.map((chunk) =>
    element("th", { scope: "col" }, chunks > 1 ? `chunk ${chunk}` : "the whole buffer"),
  );
  const rows = position.held.map((row, rank) =>
    element(
      "tr",
      {},
      element("th", { scope: "row" }, `rank ${rank}`),
      ...row.map((held) => drawHeld(held, ranks, is_sum)),
    ),
  );
  table.replaceChildren(
    element("caption", {}, is_sum ? "Whose values each rank has added up" : "What each rank holds"),
    element("thead", {}, element("tr", {}, element("td"), ...heads)),
    element("tbody", {}, ...rows),
  );
}

function drawHeld({ text, words, from_ranks, look, is_new }, ranks, isSum) {
  const said = element("span", { className: "labkit-said" }, `${words}${is_new ? ", new" : ""}`);
  const squares = element("span", { className: "labkit-squares", "aria-hidden": "true" });
  for (let rank = 0; isSum && rank < ranks; rank += 1) {
    squares.append(element("i", { className: from_ranks.includes(rank) ? "labkit-in" : "" }));
  }
  const shown = element("span", { "aria-hidden": "true" }, text);
  const className = `labkit-hold-${look}${is_new ? " labkit-new" : ""}`;
  return element("td", {}, element("div", { className }, shown, squares, said));
}

function legend({ is_sum, chunks }) {
  const entry = (className, text, inside = "") => {
    const sample = element("i", { className: `labkit-sample ${className}` }, inside);
    return element("span", {}, sample, text);
  };
  return element(
    "p",
    { className: "labkit-stepper-legend" },
    ...(is_sum ? [entry("labkit-hold-partial", "partial sum")] : []),
    entry("labkit-hold-whole", is_sum ? "finished sum" : "values"),
    entry("labkit-new", "new in this step"),
    ...(chunks > 1 ? [entry("labkit-hold-whole", "on an arrow: the chunk that is sent", "2")] : []),
  );
}

export default { render };
