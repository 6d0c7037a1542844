// SPDX-License-Identifier: BSD-2-Clause
// Who waits for whom: threads, what they wait for, and who ends the waits, with seconds on the
// edges. Threads of the same name are one node.

import { el, section, show, svg } from "./dom.js";
import { percent, seconds } from "./format.js";
import { lackOf } from "./flame.js";
import { grid } from "./grid.js";
import { chooser, FILTER_KEYS } from "./model.js";
import { set, watch } from "./state.js";
import { tableOf, WAIT_FILES } from "./tables.js";

const MAX_NODES = 10; // of each column; the others are one node
const NODE_PX = 34;
const PREEMPTED = "a CPU"; // a wait that nobody ends

function whatOf(tree, node) {
	// All futexes of one variable, such as a condition variable, are one thing.
	return tree.names[tree.frame[node]].slice(1, -1).replace(/^(futex [^\s+]+)\+0x[0-9a-f]+/, "$1");
}

// Adds up the waits by thread, thing and waker.
function edgesOf(tree, graph) {
	const found = new Map();
	const has = chooser(tree, graph);
	let preempted = 0;
	for (let row = 0; row < graph.node.length; row++) {
		if (!has(row))
			continue;
		const what = whatOf(tree, graph.node[row]);
		if (what === PREEMPTED) {
			preempted += graph.weight[row];
			continue;
		}
		const waker = graph.waker[row];
		const names = [tree.names[graph.task[row] - 1], what,
			waker ? tree.names[waker - 1] : "(nobody yet, or unknown)"];
		const key = JSON.stringify(names);
		const edge = found.get(key) ?? { names, ns: 0 };
		edge.ns += graph.weight[row];
		found.set(key, edge);
	}
	return { edges: [...found.values()].sort((a, b) => b.ns - a.ns), preempted };
}

// Returns the nodes of one column, the largest first, by name.
function nodesOf(edges, column) {
	const sums = new Map();
	for (const { names, ns } of edges)
		sums.set(names[column], (sums.get(names[column]) ?? 0) + ns);
	const sorted = [...sums].sort((a, b) => b[1] - a[1]);
	const found = new Map(sorted.slice(0, MAX_NODES).map(([name, ns]) => [name, { name, ns }]));
	const rest = sorted.slice(MAX_NODES);
	if (rest.length) {
		const others = { name: `${rest.length} others`, isRest: true,
			ns: rest.reduce((sum, [, ns]) => sum + ns, 0) };
		rest.forEach(([name]) => found.set(name, others));
	}
	return found;
}

function place(nodes, x, height, total) {
	const all = [...new Set(nodes.values())];
	const scale = (height - all.length * 16) / total;
	let y = 8;
	for (const node of all) {
		Object.assign(node, { x, y, h: Math.max(node.ns * scale, 2), used: [0, 0] });
		y += Math.max(node.h, NODE_PX - 16) + 16;
	}
	return { all, bottom: y, scale };
}

function shorten(text, letters) {
	return text.length > letters ? `${text.slice(0, letters - 1)}\u2026` : text;
}

function link(from, to, ns, total, scale) {
	const w = Math.max(ns * scale, 1);
	const y1 = from.y + from.used[1] + w / 2, y2 = to.y + to.used[0] + w / 2;
	from.used[1] += ns * scale;
	to.used[0] += ns * scale;
	const x1 = from.x + 8, x2 = to.x, middle = (x1 + x2) / 2;
	return svg("path", { class: "edge", d: `M${x1},${y1} C${middle},${y1} ${middle},${y2} ${x2},${y2}`,
		"stroke-width": w }, svg("title", {}, `${from.name} to ${to.name}: ${seconds(ns, 6)} s, ` +
		percent(ns, total)));
}

function draw(edges, total, width) {
	const columns = [0, 1, 2].map((i) => nodesOf(edges, i));
	const most = Math.max(...columns.map((nodes) => new Set(nodes.values()).size));
	const height = Math.max(most * NODE_PX + 40, 120);
	const xs = [4, width * 0.36, width * 0.74];
	const placed = columns.map((nodes, i) => place(nodes, xs[i], height, total));
	const scale = Math.min(...placed.map((one) => one.scale));
	for (const { all } of placed)
		all.forEach((node) => (node.h = Math.max(node.ns * scale, 2)));
	const merged = [new Map(), new Map()];
	for (const { names, ns } of edges) {
		for (const i of [0, 1]) {
			const from = columns[i].get(names[i]), to = columns[i + 1].get(names[i + 1]);
			const inner = merged[i].get(from) ?? new Map();
			inner.set(to, (inner.get(to) ?? 0) + ns);
			merged[i].set(from, inner);
		}
	}
	const links = merged.flatMap((outer) => [...outer].flatMap(([from, inner]) =>
		[...inner].map(([to, ns]) => link(from, to, ns, total, scale))));
	const letters = Math.floor((width * 0.3) / 7);
	const labels = placed.flatMap(({ all }) => all.flatMap((node) => [
		svg("rect", { class: "node", x: node.x, y: node.y, width: 8, height: node.h }),
		svg("text", { x: node.x + 13, y: node.y + 9 }, shorten(node.name, letters),
			svg("title", {}, node.name)),
		svg("text", { class: "soft", x: node.x + 13, y: node.y + 23 },
			`${seconds(node.ns, 6)} s`)]));
	const bottom = Math.max(...placed.map((one) => one.bottom), height);
	return svg("svg", { class: "waits", width, height: bottom, role: "img", viewBox:
		`0 0 ${width} ${bottom}`, "aria-label": "Threads, what they wait for, and who ends the waits; " +
		"the table below has the same numbers" }, ...links, ...labels);
}

export class Waits {
	constructor(data) {
		this.data = data;
		this.graph = data.runs[0].graphs.waits;
		this.section = section("waits", "Who waits for whom",
			"Which threads wait, for what, and who lets them go on?");
		this.inside = el("div");
		this.section.append(this.inside);
		const hz = data.runs[0].meta.tsc_hz || 1e9;
		for (const one of data.runs[0].tables.filter((table) => WAIT_FILES.includes(table.file)))
			this.section.append(el("details", {}, el("summary", {}, one.title), tableOf(one, hz, 20)));
		watch([...FILTER_KEYS, "from", "to"], () => this.redraw());
	}

	redraw() {
		const { edges, preempted } = edgesOf(this.data.tree, this.graph);
		const total = edges.reduce((sum, edge) => sum + edge.ns, 0);
		const width = Math.max(this.section.clientWidth, 620);
		const more = preempted
			? ` ${seconds(preempted, 6)} s more were waits for a CPU of threads that were preempted.` : "";
		if (!total) {
			show(this.inside, el("p", {}, `No thread has waited for another one.${more}`));
			return;
		}
		show(this.inside,
			el("p", {}, `${seconds(total, 6)} s of waits, the times of all threads added up.${more}` +
				lackOf(this.graph).slice(1)),
			el("div", { class: "scroll" }, el("div", { class: "heads", "aria-hidden": "true",
				style: { width: `${width}px` } }, ...["waits", "for", "until woken by"].map(
				(text) => el("span", {}, text))), draw(edges, total, width)),
			grid({ caption: "Waits by thread, thing and waker", top: 8,
				columns: [{ title: "thread" }, { title: "seconds", number: true },
					{ title: "%", number: true }, { title: "waits for" }, { title: "woken by" }],
				rows: edges.map(({ names, ns }) => [names[0], seconds(ns), percent(ns, total), names[1],
					names[2]]),
				open: (i) => set({ comm: edges[i].names[0], graph: "waits", q: edges[i].names[1] },
					{ at: "flame" }) }));
	}
}
