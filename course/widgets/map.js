const HINT =
  "Select a node or an edge: click it, or press Tab to enter the map, arrow keys to move, " +
  "Enter or Space to select. The same again, or Escape, clears the selection.";
const SMALLEST = 0.8; // of its full size: so far a drawing may shrink before a narrower one is due
const BESIDE = 0.88; // so far it shrinks to leave room for the panel beside it
const STEPS = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };

function render({ model, el }) {
  prepare(el, "labkit-map");
  const { title, items, layouts } = model.get("drawing");
  const picture = svgElement("svg", { role: "group", "aria-label": `Map: ${title}` });
  const panel = element("div", { className: "labkit-panel", "aria-live": "polite" });
  const frame = element("div", { className: "labkit-map-frame" }, picture, panel);
  el.append(
    element("p", { className: "labkit-map-title", textContent: title }),
    element("p", { className: "labkit-hint", textContent: HINT }),
    frame,
    copyLine(model.get("mermaid")),
  );

  let marks = [];
  let current = 0; // the item that Tab leads to

  const focus = (index) => {
    current = (index + items.length) % items.length;
    marks.forEach((mark, i) => mark.setAttribute("tabindex", i === current ? 0 : -1));
    marks[current].focus();
  };
  const select = (key) => {
    model.set("selected", key);
    model.save_changes();
    if (key) panel.scrollIntoView({ block: "nearest" });
  };
  const toggle = ({ key }) => select(key === model.get("selected") ? "" : key);
  const onKey = (event, index) => {
    if (event.key in STEPS) focus(index + STEPS[event.key]);
    else if (event.key === "Home") focus(0);
    else if (event.key === "End") focus(items.length - 1);
    else if (event.key === "Enter" || event.key === " ") toggle(items[index]);
    else if (event.key === "Escape" && model.get("selected")) select("");
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const show = () => {
    const selected = items.findIndex((item) => item.key === model.get("selected"));
    marks.forEach((mark, i) => mark.setAttribute("aria-pressed", i === selected));
    panel.replaceChildren(...explanation(items[selected]));
    place(panel, marks[selected], picture);
  };
  const draw = (layout) => {
    const hadFocus = marks[current]?.matches(":focus");
    marks = layout.marks.map((mark, i) => drawMark(mark, items[i]));
    marks.forEach((mark, i) => {
      mark.setAttribute("tabindex", i === current ? 0 : -1);
      mark.addEventListener("keydown", (event) => onKey(event, i));
      mark.addEventListener("click", () => {
        focus(i);
        toggle(items[i]);
      });
    });
    picture.setAttribute("viewBox", `0 0 ${layout.width} ${layout.height}`);
    picture.style.flexBasis = `${BESIDE * layout.width}px`;
    picture.style.maxWidth = `${layout.width}px`;
    picture.replaceChildren(...marks);
    frame.classList.toggle("labkit-narrow", layout !== layouts[0]);
    if (hadFocus) focus(current);
  };

  let drawn = null;
  const fit = () => {
    const room = frame.clientWidth;
    const layout = layouts.find(({ width }) => SMALLEST * width <= room) ?? layouts.at(-1);
    if (layout !== drawn) draw((drawn = layout));
    show();
  };
  const resized = new ResizeObserver(fit);
  resized.observe(frame);
  model.on("change:selected", show);
  fit();
  replaceTwin(el);
  return () => {
    resized.disconnect();
    model.off("change:selected", show);
  };
}

function drawMark(mark, item) {
  const name = { role: "button", "aria-label": `${item.kind}: ${item.name}` };
  return mark.box ? drawNode(mark, name) : drawEdge(mark, name);
}

function drawNode({ box, text }, name) {
  const { x, y, width, height } = box;
  const ring = { x: x - 4, y: y - 4, width: width + 8, height: height + 8, rx: 10 };
  return svgElement(
    "g",
    { class: "labkit-node", ...name },
    svgElement("rect", { class: "labkit-ring", ...ring }),
    svgElement("rect", { class: "labkit-box", ...box, rx: 7 }),
    textLines(text),
  );
}

function drawEdge({ path, head, text }, name) {
  return svgElement(
    "g",
    { class: "labkit-edge", ...name },
    svgElement("path", { class: "labkit-reach", d: path }),
    svgElement("path", { class: "labkit-line", d: path }),
    svgElement("polygon", { class: "labkit-head", points: head }),
    svgElement("rect", { class: "labkit-ring", ...text.frame, rx: 4 }),
    textLines(text),
  );
}

/** Lines of text, each centred on x, the first with its baseline at y. */
function textLines({ x, y, size, leading, lines }) {
  const spans = lines.map((line, i) => {
    const span = svgElement("tspan", { x, y: y + i * leading });
    span.textContent = line;
    return span;
  });
  return svgElement("text", { "font-size": size, "text-anchor": "middle" }, ...spans);
}

function explanation(item) {
  if (!item) return [element("p", { textContent: "Nothing is selected." })];
  const facts = element("dl");
  for (const [heading, text] of item.facts) {
    if (heading) facts.append(element("dt", { textContent: heading }));
    facts.append(element("dd", { innerHTML: text }));
  }
  const kind = element("strong", { textContent: `${item.kind}: ` });
  return [element("p", {}, kind, item.name), facts];
}

/**
 * Where the panel stands: level with the selected mark where there is room beside the map, right
 * under the mark (or over it) on a narrow page, and otherwise below the map.
 */
function place(panel, mark, picture) {
  const isNarrow = panel.parentElement.classList.contains("labkit-narrow");
  panel.classList.toggle("labkit-floating", isNarrow && Boolean(mark));
  panel.style.marginTop = panel.style.top = "";
  if (!mark) return;
  const [map, own] = [picture.getBoundingClientRect(), panel.getBoundingClientRect()];
  const spot = (mark.querySelector(".labkit-box, text") ?? mark).getBoundingClientRect();
  if (isNarrow) {
    const under = spot.bottom - map.top + 16;
    const over = spot.top - map.top - own.height - 16;
    panel.style.top = `${under + own.height > map.height && over > 0 ? over : under}px`;
  } else if (own.left >= map.right) {
    const level = Math.min(spot.top - map.top - 12, map.height - own.height);
    panel.style.marginTop = `${Math.max(0, level)}px`;
  }
}

function copyLine(mermaid) {
  const button = element("button", { type: "button", textContent: "Copy Mermaid" });
  const note = element("span", { className: "labkit-note", role: "status" });
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(mermaid);
      note.textContent = "Copied: paste it where Mermaid is drawn.";
    } catch {
      note.textContent = "This page may not use the clipboard. The source is in the fold above.";
    }
  });
  return element("p", {}, button, note);
}

export default { render };
