// Draws what `course.widgets.chart` describes; every place is computed there.

function drawChart(chart) {
  const { width, height, frame, says } = chart;
  const [left, top, right, bottom] = frame;
  const [hereX, hereWords] = chart.here;
  return svgElement(
    "svg",
    { class: "labkit-chart", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": says },
    ...chart.y_ticks.flatMap(([y, text]) => [
      svgElement("line", { class: "labkit-rule", x1: left, x2: right, y1: y, y2: y }),
      chartText(left - 6, y, text, "end"),
    ]),
    ...chart.x_ticks.map(([x, text]) => chartText(x, bottom + 12, text, "middle")),
    chartText((left + right) / 2, bottom + 30, chart.x_name, "middle"),
    chartText(2, 9, chart.y_name, "start"),
    svgElement("line", { class: "labkit-here", x1: hereX, x2: hereX, y1: top, y2: bottom }),
    chartText(hereX, top - 9, hereWords, hereX < left + 40 ? "start" : "middle"),
    ...chart.curves.flatMap((curve) => drawCurve(curve, right)),
    ...chart.marks.flatMap(([x, y, words, isRight]) => [
      svgElement("circle", { class: "labkit-mark", cx: x, cy: y, r: 6 }),
      isRight ? chartText(x - 8, y - 14, words, "end") : chartText(x + 8, y + 15, words, "start"),
    ]),
  );
}

function drawCurve({ name, path, end, label, colour, dashes, width }, right) {
  const line = { fill: "none", stroke: colour, "stroke-dasharray": dashes, "stroke-width": width };
  return [
    svgElement("path", { d: path, ...line }),
    svgElement("path", { d: `M${right + 14} ${label}h26`, ...line }),
    chartText(right + 46, label, name, "start"),
  ];
}

function chartText(x, y, words, anchor) {
  const text = svgElement("text", { x, y, dy: "0.35em", "text-anchor": anchor });
  text.textContent = words;
  return text;
}
