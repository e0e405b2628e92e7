const HINT =
  "Select a node or an edge: click it, or press Tab to enter the map, arrow keys to move, " +
  "Enter or Space to select. Escape clears the selection.";
const SMALLEST = 0.88; // of its full size: so far the map shrinks to leave room beside it
const NEXT = ["ArrowRight", "ArrowDown"];
const PREVIOUS = ["ArrowLeft", "ArrowUp"];

function render({ model, el }) {
  prepare(el, "labkit-map");
  const { title, width, height, items } = model.get("drawing");
  const marks = items.map((item) => (item.box ? drawNode(item) : drawEdge(item)));
  const picture = svgElement(
    "svg",
    { viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": `Map: ${title}` },
    ...marks.filter((_, i) => items[i].path),
    ...marks.filter((_, i) => items[i].box),
  );
  picture.style.flex = `1 1 ${SMALLEST * width}px`;
  picture.style.maxWidth = `${width}px`;
  const panel = element("div", { className: "labkit-panel", "aria-live": "polite" });
  const frame = element("div", { className: "labkit-map-frame" }, picture, panel);
  el.append(
    element("p", { className: "labkit-map-title", textContent: title }),
    element("p", { className: "labkit-hint", textContent: HINT }),
    frame,
    copyLine(model.get("mermaid")),
  );

  const select = (key) => {
    model.set("selected", key);
    model.save_changes();
    if (key) panel.scrollIntoView({ block: "nearest" });
  };
  const focus = (index) => {
    marks.forEach((mark, i) => mark.setAttribute("tabindex", i === index ? 0 : -1));
    marks[index].focus();
  };
  const show = () => {
    const selected = items.findIndex((item) => item.key === model.get("selected"));
    marks.forEach((mark, i) => mark.setAttribute("aria-pressed", i === selected));
    panel.replaceChildren(...explanation(items[selected]));
    placeBeside(panel, marks[selected], picture);
  };

  marks.forEach((mark, index) => {
    mark.setAttribute("tabindex", index === 0 ? 0 : -1);
    mark.addEventListener("click", () => {
      focus(index);
      select(items[index].key);
    });
    mark.addEventListener("keydown", (event) => {
      const last = items.length - 1;
      if (NEXT.includes(event.key)) focus(index === last ? 0 : index + 1);
      else if (PREVIOUS.includes(event.key)) focus(index === 0 ? last : index - 1);
      else if (event.key === "Home") focus(0);
      else if (event.key === "End") focus(last);
      else if (event.key === "Enter" || event.key === " ") select(items[index].key);
      else if (event.key === "Escape") select("");
      else return;
      event.preventDefault();
      event.stopPropagation();
    });
  });

  const resized = new ResizeObserver(show);
  resized.observe(frame);
  model.on("change:selected", show);
  replaceTwin(el);
  return () => {
    resized.disconnect();
    model.off("change:selected", show);
  };
}

function drawNode(item) {
  const { x, y, width, height } = item.box;
  const ring = { x: x - 4, y: y - 4, width: width + 8, height: height + 8, rx: 10 };
  return svgElement(
    "g",
    { class: "labkit-node", role: "button", "aria-label": `Node: ${item.name}` },
    svgElement("rect", { class: "labkit-ring", ...ring }),
    svgElement("rect", { class: "labkit-box", x, y, width, height, rx: 7 }),
    textLines(item.text),
  );
}

function drawEdge(item) {
  return svgElement(
    "g",
    { class: "labkit-edge", role: "button", "aria-label": `Edge: ${item.name}` },
    svgElement("path", { class: "labkit-reach", d: item.path }),
    svgElement("path", { class: "labkit-line", d: item.path }),
    svgElement("polygon", { class: "labkit-head", points: item.head }),
    svgElement("rect", { class: "labkit-ring", ...item.text.frame, rx: 4 }),
    textLines(item.text),
  );
}

/** Lines of text, centred on (x, y of the first baseline). */
function textLines({ x, y, size, leading, lines }) {
  const spans = lines.map((line, i) => {
    const span = svgElement("tspan", { x, y: y + i * leading });
    span.textContent = line;
    return span;
  });
  return svgElement("text", { "font-size": size, "text-anchor": "middle" }, ...spans);
}

function explanation(item) {
  if (!item) return [element("p", { textContent: "Nothing is selected yet." })];
  const facts = element("dl");
  for (const [heading, text] of item.facts) {
    if (heading) facts.append(element("dt", { textContent: heading }));
    facts.append(element("dd", { innerHTML: text }));
  }
  const kind = item.box ? "Node" : "Edge";
  return [
    element("p", {}, element("strong", { textContent: `${kind}: ` }), item.name),
    facts,
  ];
}

/** Beside a wide map the panel stands level with what it explains; below a narrow one, as it is. */
function placeBeside(panel, mark, picture) {
  panel.style.marginTop = "0";
  const [map, text] = [picture.getBoundingClientRect(), panel.getBoundingClientRect()];
  if (!mark || text.left < map.right) return;
  const level = mark.getBoundingClientRect().top - map.top;
  panel.style.marginTop = `${Math.max(0, Math.min(level, map.height - text.height))}px`;
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
