// SPDX-License-Identifier: BSD-2-Clause
// Makes elements. Texts become text nodes, so none of them is ever HTML.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, properties, children) {
	for (const [key, value] of Object.entries(properties)) {
		if (key.startsWith("on"))
			node.addEventListener(key.slice(2), value);
		else if (key === "style")
			Object.entries(value).forEach(([name, text]) => node.style.setProperty(name, text));
		else if (value !== null && value !== undefined && value !== false)
			node.setAttribute(key, value === true ? "" : value);
	}
	node.append(...children.filter((child) => child !== null && child !== undefined));
	return node;
}

export function el(tag, properties = {}, ...children) {
	return fill(document.createElement(tag), properties, children);
}

export function svg(tag, properties = {}, ...children) {
	return fill(document.createElementNS(SVG, tag), properties, children);
}

export function show(node, ...children) {
	node.replaceChildren(...children.filter((child) => child !== null && child !== undefined));
	return node;
}

// Says something to those who listen to the page instead of looking at it.
export function say(text) {
	document.getElementById("status").textContent = text;
}

// Adds a section with a heading, which is a view of its own in the address.
export function section(id, title, question) {
	const node = el("section", { id, "aria-labelledby": `${id}-title` },
		el("h2", { id: `${id}-title` }, title), el("p", { class: "question" }, question));
	document.getElementById("main").append(node);
	document.getElementById("views").append(el("a", { href: `#${id}` }, title));
	return node;
}

// Fits a canvas to its element, in pixels of the screen, and returns its context.
export function prepare(canvas, height) {
	const width = Math.max(canvas.parentNode.clientWidth, 50);
	const ratio = window.devicePixelRatio || 1;
	canvas.width = Math.round(width * ratio);
	canvas.height = Math.round(height * ratio);
	canvas.style.setProperty("height", `${height}px`);
	const context = canvas.getContext("2d");
	context.setTransform(ratio, 0, 0, ratio, 0, 0);
	context.clearRect(0, 0, width, height);
	context.font = "12px system-ui, sans-serif";
	context.textBaseline = "middle";
	return { context, width };
}

// Returns a color of the style, which follows the theme.
export function color(name) {
	return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

// Shortens a text to a width, for a canvas. A letter is taken for at least three pixels wide.
export function fit(context, text, width) {
	if (width < 12)
		return "";
	if (text.length * 3 < width && context.measureText(text).width <= width)
		return text;
	let low = 0, high = Math.min(text.length, Math.floor(width / 3));
	while (low < high) {
		const middle = (low + high + 1) >> 1;
		if (context.measureText(`${text.slice(0, middle)}\u2026`).width <= width)
			low = middle;
		else
			high = middle - 1;
	}
	return low >= text.length ? text : low ? `${text.slice(0, low)}\u2026` : "";
}
