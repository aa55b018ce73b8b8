// Charts of the last hour, as SVG. Every text is set as text.
const space = "http://www.w3.org/2000/svg";

function node(name, attributes, ...children) {
  const element = document.createElementNS(space, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

const left = 56, bottom = 16, top = 8;
// As wide as a chart is shown, so that its letters have one size; measured for each drawing, since windows change.
let width, height;

// A number that divides an axis well, at or above the value.
function ceiling(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  for (const step of [1, 2, 2.5, 5, 10]) if (step * power >= value) return step * power;
  return value;
}

function frame(title, largest, format) {
  [width, height] = window.innerWidth < 640 ? [330, 118] : [590, 150];
  const svg = node("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": title });
  for (const part of [0, 0.5, 1]) {
    const y = top + (height - top - bottom) * (1 - part);
    svg.append(node("line", { class: "grid", x1: left, x2: width, y1: y, y2: y }));
    svg.append(node("text", { x: left - 4, y: y + 4, "text-anchor": "end" }, format(largest * part)));
  }
  for (const [minutes, part] of [[60, 0], [30, 0.5], [0, 1]]) {
    const anchor = part === 0 ? "start" : part === 1 ? "end" : "middle";
    const text = minutes === 0 ? "now" : `${minutes} min ago`;
    svg.append(node("text", { x: left + (width - left) * part, y: height - 3, "text-anchor": anchor }, text));
  }
  return svg;
}

// The places of the last hour, each with the slot that falls on it or nothing.
function grid(charts) {
  const seconds = charts.slot_seconds, count = Math.round(3600 / seconds);
  const now = Math.floor(charts.now / 1000), first = now - (now % seconds) - (count - 1) * seconds;
  const slots = new Array(count).fill(null);
  for (const slot of charts.slots) {
    const place = Math.round((slot.start - first) / seconds);
    if (place >= 0 && place < count) slots[place] = slot;
  }
  return slots;
}

const yOf = (value, largest) => top + (height - top - bottom) * (1 - Math.min(1, value / largest));

// Bars on one another: series is [[class, slot => value], …].
export function bars(title, charts, series, format) {
  const slots = grid(charts);
  const sum = (slot) => (slot ? series.reduce((total, [, of]) => total + (of(slot) || 0), 0) : 0);
  const largest = ceiling(Math.max(...slots.map(sum)));
  const svg = frame(title, largest, format), step = (width - left) / slots.length;
  slots.forEach((slot, place) => {
    if (!slot) return;
    let base = 0;
    for (const [kind, of] of series) {
      const value = of(slot) || 0;
      if (value <= 0) continue;
      const y = yOf(base + value, largest), tall = yOf(base, largest) - y;
      svg.append(node("rect", { class: kind, x: left + place * step, y, width: Math.max(step - 0.6, 0.6), height: Math.max(tall, 0.6) }));
      base += value;
    }
  });
  return svg;
}

// Lines: a gap where nothing was measured.
export function lines(title, charts, series, format) {
  const slots = grid(charts);
  const values = series.flatMap(([, of]) => slots.map((slot) => (slot ? of(slot) : null))).filter((value) => value != null);
  const largest = ceiling(Math.max(0, ...values));
  const svg = frame(title, largest, format), step = (width - left) / slots.length;
  for (const [kind, of] of series) {
    let points = [];
    const draw = () => {
      if (points.length === 1) points.push([points[0][0] + step, points[0][1]]);
      if (points.length) svg.append(node("polyline", { class: kind, points: points.map((p) => p.join(",")).join(" ") }));
      points = [];
    };
    slots.forEach((slot, place) => {
      const value = slot ? of(slot) : null;
      if (value == null) draw();
      else points.push([left + (place + 0.5) * step, yOf(value, largest)]);
    });
    draw();
  }
  return svg;
}
