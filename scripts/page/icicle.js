// SPDX-License-Identifier: BSD-2-Clause
// Draws a tree of frames on a canvas, callers above the functions that they call, and lets a mouse,
// a finger or a keyboard choose a frame. Frames narrower than a pixel are not drawn, nor are
// their callees, so a step draws no more than what is visible.

import { color, el, fit, prepare } from "./dom.js";
import { sortedChildren } from "./model.js";

const ROW = 18;
const MIN_WIDTH = 1;
const MAX_ROWS = 200;

// Returns the node that a chain of frames leads to; as far as there is one.
export function follow(view, chain) {
	let node = 0;
	for (const frame of chain) {
		const next = sortedChildren(view, node).find((child) => view.frame[child] === frame);
		if (next === undefined)
			break;
		node = next;
	}
	return node;
}

export function chainOf(view, node) {
	const found = [];
	for (let i = node; i > 0; i = view.parent[i])
		found.unshift(view.frame[i]);
	return found;
}

// Returns a color between cold and hot for a change from -1 to 1.
function changeColor(change) {
	const share = Math.round(Math.min(Math.abs(change), 1) * 100);
	return `color-mix(in srgb, ${color(change > 0 ? "more" : "less")} ${share}%, ${color("same")})`;
}

export class Icicle {
	// handlers: zoom(chain), pick(frame), and words(node): the text of a frame's status line.
	constructor(label, handlers) {
		this.handlers = handlers;
		this.canvas = el("canvas", { tabindex: "0", role: "application", "aria-label": label,
			"aria-describedby": "keys" });
		this.info = el("p", { class: "info", "aria-live": "polite" });
		this.element = el("div", { class: "icicle" }, this.canvas, this.info);
		this.cursor = -1;
		this.rects = [];
		const at = (event) => this.find(event.offsetX, event.offsetY);
		this.canvas.addEventListener("mousemove", (event) => this.point(at(event)));
		this.canvas.addEventListener("mouseleave", () => this.point(-1));
		this.canvas.addEventListener("click", (event) => this.zoom(at(event)));
		this.canvas.addEventListener("dblclick", (event) => this.pick(at(event)));
		this.canvas.addEventListener("keydown", (event) => this.key(event));
	}

	find(x, y) {
		const found = this.rects.find((r) => y >= r.y && y < r.y + ROW && x >= r.x && x < r.x + r.w);
		return found ? found.node : -1;
	}

	zoom(node) {
		if (node >= 0 && this.handlers.zoom)
			this.handlers.zoom(chainOf(this.data.view, node));
	}

	pick(node) {
		if (node > 0 && this.handlers.pick)
			this.handlers.pick(this.data.view.frame[node]);
	}

	point(node) {
		this.info.textContent = node < 0 ? this.rest : this.handlers.words(this.data.view, node);
	}

	// data: tree, view, root (a node), matches (by frame), and what a frame's change is, or null.
	draw(data) {
		this.data = data;
		this.rest = data.rest ?? "";
		this.place();
		this.paint();
		this.point(this.cursor);
	}

	// Finds out which frames are visible, and where.
	place() {
		const { view, root } = this.data;
		const size = view.size ?? view.total;
		const width = Math.max(this.element.clientWidth, 50);
		const rects = [];
		let y = 0;
		for (const node of [...this.ancestors(root), root]) {
			rects.push({ node, x: 0, y, w: width, above: node !== root });
			y += ROW;
		}
		const scale = size[root] ? width / size[root] : 0;
		const stack = [[root, 0, y]];
		while (stack.length) {
			const [node, left, top] = stack.pop();
			if (top >= MAX_ROWS * ROW)
				continue;
			let x = left;
			for (const child of sortedChildren(view, node)) {
				const w = size[child] * scale;
				if (w < MIN_WIDTH)
					break;
				rects.push({ node: child, x, y: top, w, above: false });
				stack.push([child, x, top + ROW]);
				x += w;
			}
		}
		this.rects = rects;
		this.height = rects.reduce((most, r) => Math.max(most, r.y + ROW), ROW);
		if (!rects.some((r) => r.node === this.cursor))
			this.cursor = -1;
	}

	ancestors(node) {
		const found = [];
		for (let i = node; i > 0; i = this.data.view.parent[i])
			found.unshift(this.data.view.parent[i]);
		return found;
	}

	paint() {
		const { context } = prepare(this.canvas, this.height);
		const { tree, view, matches, change, all } = this.data;
		const colors = ["task", "cut", "user", "call", "kernel", "wait"].map((kind) => color(kind));
		const text = color("on-frame"), hit = color("match"), line = color("page");
		for (const r of this.rects) {
			const frame = view.frame[r.node];
			const matching = r.node && matches && matches[frame];
			const fill = r.node ? colors[tree.kinds[frame]] : colors[0];
			context.globalAlpha = r.above ? 0.5 : 1;
			context.fillStyle = matching ? hit : change ? changeColor(change(r.node)) : fill;
			context.fillRect(r.x, r.y, Math.max(r.w - (r.w > 3 ? 1 : 0), MIN_WIDTH), ROW - 1);
			context.globalAlpha = 1;
			context.fillStyle = text;
			const name = r.node ? tree.names[frame] : all;
			const short = fit(context, name, r.w - 7);
			if (short)
				context.fillText(short, r.x + 3, r.y + ROW / 2);
			if (r.node === this.cursor) {
				context.strokeStyle = color("text");
				context.lineWidth = 2;
				context.strokeRect(r.x + 1, r.y + 1, Math.max(r.w - 2, 1), ROW - 3);
			}
		}
		context.fillStyle = line;
		this.canvas.dataset.nodes = this.rects.length;
	}

	key(event) {
		const { view, root } = this.data;
		const here = this.cursor < 0 ? root : this.cursor;
		const isVisible = (node) => this.rects.some((r) => r.node === node);
		const beside = sortedChildren(view, view.parent[here]).filter(isVisible);
		const moves = {
			ArrowDown: () => sortedChildren(view, here).find(isVisible),
			ArrowUp: () => (here ? view.parent[here] : 0),
			ArrowLeft: () => beside[beside.indexOf(here) - 1],
			ArrowRight: () => beside[beside.indexOf(here) + 1],
			Home: () => root,
		};
		if (moves[event.key]) {
			this.cursor = moves[event.key]() ?? here;
			this.paint();
			this.point(this.cursor);
		} else if (event.key === "Enter") {
			this.zoom(here);
		} else if (event.key === "Escape" || event.key === "Backspace") {
			this.zoom(root ? view.parent[root] : 0);
		} else if (event.key === "f") {
			this.pick(here);
		} else {
			return;
		}
		event.preventDefault();
	}
}
