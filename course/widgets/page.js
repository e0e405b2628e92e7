// Shared by all widgets: it stands before each widget's own module.

/** An element with properties, attributes (names with a dash, and `role`) and children. */
function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.includes("-") || name === "role") made.setAttribute(name, value);
    else made[name] = value;
  }
  made.append(...children);
  return made;
}

/** An SVG element with attributes and children. */
function svgElement(tag, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/**
 * Makes `el` a widget of the course: styled, and with the keys for itself. Without the attribute
 * JupyterLab would take arrow keys, Enter and Space as commands to the notebook; it looks for it
 * on the element that has the focus before it looks further out.
 */
function prepare(el, className) {
  el.classList.add("labkit", className);
  el.addEventListener("focusin", (event) => {
    event.target.setAttribute("data-lm-suppress-shortcuts", "true");
  });
}

/**
 * Closes the static twin that stands before the widget, so that a live page shows nothing twice.
 * The picture before the twin hides with it, and is back when the reader opens it. Nothing of this
 * is saved with the notebook.
 */
function replaceTwin(el, deadline = Date.now() + 10_000) {
  const twin = el.isConnected ? nearestTwin(el) : undefined;
  if (twin) {
    const pictures = picturesBefore(twin);
    const follow = () => {
      for (const picture of pictures) picture.style.display = twin.open ? "" : "none";
    };
    twin.open = false;
    twin.addEventListener("toggle", follow);
    follow();
  } else if (Date.now() < deadline) {
    setTimeout(() => replaceTwin(el, deadline), 50);
  }
}

function nearestTwin(el) {
  const area = el.closest(".jp-OutputArea") ?? document;
  const isBefore = (twin) =>
    twin.compareDocumentPosition(el) & Node.DOCUMENT_POSITION_FOLLOWING;
  return [...area.querySelectorAll("details.labkit-twin")].filter(isBefore).at(-1);
}

function picturesBefore(twin) {
  const found = [];
  let output = twin.closest(".jp-OutputArea-child")?.previousElementSibling;
  while (output?.querySelector(".jp-RenderedImage, .jp-RenderedSVG")) {
    found.push(output);
    output = output.previousElementSibling;
  }
  return found;
}
