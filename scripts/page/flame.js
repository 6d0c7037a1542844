// SPDX-License-Identifier: BSD-2-Clause
// The flame graph, and the functions in it: of CPU time, of waits, of the critical path or of the
// change between two runs, with search, zoom, reverse, and callers and callees of one function.

import { codeOf } from "./code.js";
import { el, say, section, show } from "./dom.js";
import { percent, plural, seconds, weight } from "./format.js";
import { follow, Icicle } from "./icicle.js";
import { callers, FILTER_KEYS, functions, matched, reversed, sandwich, search } from "./model.js";
import { get, set, watch } from "./state.js";
import { grid } from "./grid.js";

const TITLES = {
	cpu: "CPU time", waits: "Waits", path: "Critical path", change: "Change of CPU time",
	"change-waits": "Change of waits",
};

// Says which choices do not apply to a graph, or returns "".
export function lackOf(graph) {
	const lacks = [
		get("tid") && graph.lacks.includes(graph.tid) && "threads",
		get("call") && graph.lacks.includes("call") && "system calls",
		get("from") && !graph.start && "times",
	].filter(Boolean);
	const what = graph.unit === "ns" ? "Sums of waits" : "Samples";
	return lacks.length ? `. ${what} have no ${lacks.join(" and no ")}: that choice is not in ` +
		"this picture" : "";
}

export class Flame {
	constructor(data) {
		this.data = data;
		this.tree = data.tree;
		this.section = section("flame", "Flame graph",
			"Which functions take the time, and who calls them? A click zooms; a double click shows " +
			"callers and callees.");
		this.names = Object.keys(data.runs[0].graphs).filter((name) => this.graph(name).total);
		// CPU time says little about a run that has mostly slept: its critical path comes first.
		if (data.runs.length === 1 && data.runs[0].path?.sleeps)
			this.names.sort((a, b) => (b === "path") - (a === "path"));
		if (data.runs.length > 1)
			this.names.push(...["change", "change-waits"].filter((name) => this.bothHave(name)));
		this.controls = el("div", { class: "controls" });
		this.words = el("p", { class: "words" });
		const words = (view, node) => this.describe(view, node);
		const pick = (frame) => set({ fn: frame }, { at: "flame" });
		this.icicle = new Icicle("Flame graph", {
			zoom: (chain) => set({ zoom: chain.join(".") }, { at: "flame" }), pick, words,
		});
		this.one = el("div", { id: "function" });
		this.below = [false, true].map((isCaller) =>
			new Icicle(isCaller ? "Callers" : "Callees", { pick, words }));
		this.table = el("div", { id: "functions" });
		this.section.append(this.controls, this.words, this.icicle.element, this.one, this.table);
		this.makeControls();
		watch(["graph", "q", "zoom", "rev", "fn", "from", "to", ...FILTER_KEYS], () => this.draw());
	}

	bothHave(name) {
		const of = name === "change" ? "cpu" : "waits";
		return this.data.runs.every((run) => run.graphs[of]?.total);
	}

	get name() {
		return this.names.includes(get("graph")) ? get("graph") : this.names[0];
	}

	graph(name) {
		const of = { change: "cpu", "change-waits": "waits" }[name] ?? name;
		return this.data.runs[0].graphs[of];
	}

	makeControls() {
		const at = { at: "flame" };
		this.buttons = this.names.map((name) => el("button", { type: "button", value: name,
			onclick: () => set({ graph: name === this.names[0] ? "" : name, zoom: "" }, at) },
		TITLES[name]));
		this.search = el("input", { type: "search", id: "search", placeholder: "function, part of it",
			oninput: () => set({ q: this.search.value }, { ...at, replaces: true }) });
		this.reverse = el("input", { type: "checkbox", id: "reverse",
			onchange: () => set({ rev: this.reverse.checked ? "1" : "", zoom: "" }, at) });
		this.out = el("button", { type: "button", onclick: () => set({ zoom: "" }, at) }, "Zoom out");
		this.controls.append(
			el("span", { class: "buttons", role: "group", "aria-label": "What is drawn" },
				...this.buttons),
			el("label", {}, "Search ", this.search), el("label", {}, this.reverse, " Reverse"),
			this.out);
		const kinds = [["user", "user code"], ["call", "system call"], ["kernel", "kernel"],
			["wait", "waited for"]];
		this.legend = el("p", { class: "legend" }, ...kinds.flatMap(([kind, text]) =>
			[el("span", { class: `swatch ${kind}`, "aria-hidden": "true" }), ` ${text} `]));
		this.controls.append(this.legend);
	}

	// Returns the tree with the weights of the chosen rows; of a change, with those of both runs.
	makeView(name) {
		if (!name.startsWith("change"))
			return callers(this.tree, this.chooseTime(name));
		const of = name === "change" ? "cpu" : "waits";
		const [now, old] = this.data.runs.map((run) => callers(this.tree, run.graphs[of]));
		const scale = this.data.changes.exact || !old.total[0] ? 1 : now.total[0] / old.total[0];
		const both = { ...now, old: old.total.map((n) => n * scale), size: new Float64Array(now.n) };
		for (let i = now.n - 1; i > 0; i--) {
			both.size[i] += Math.max(now.self[i], old.self[i] * scale);
			both.size[now.parent[i]] += both.size[i];
		}
		both.scale = scale;
		return both;
	}

	// Parts of the critical path have times, so a chosen range cuts them. Samples have none.
	chooseTime(name) {
		const graph = this.graph(name);
		const from = Number(get("from") || 0), to = Number(get("to") || Infinity);
		if (!graph.start || (!from && to === Infinity))
			return graph;
		const inside = (start, ns) => Math.max(0, Math.min(start + ns, to) - Math.max(start, from));
		// What is only known as a sum has no time.
		return { ...graph, weight: graph.weight.map((ns, row) =>
			(row < graph.start.length ? inside(graph.start[row], ns) : 0)) };
	}

	draw() {
		for (const button of this.buttons)
			button.setAttribute("aria-pressed", String(button.value === this.name));
		if (document.activeElement !== this.search)
			this.search.value = get("q");
		this.reverse.checked = get("rev") === "1";
		if (!this.name) {
			show(this.words, "This export has no stacks.");
			return;
		}
		const key = ["graph", "rev", "from", "to", ...FILTER_KEYS].map(get).join("\n");
		if (key !== this.key) {
			this.key = key;
			this.plain = this.makeView(this.name);
			const canReverse = !this.plain.size;
			this.view = get("rev") === "1" && canReverse ? reversed(this.tree, this.plain) : this.plain;
			this.functions = functions(this.tree, this.plain);
		}
		this.redraw();
	}

	redraw() {
		const { tree, view } = this;
		const chain = get("zoom") ? get("zoom").split(".").map(Number) : [];
		const root = follow(view, chain);
		const matches = get("q") ? search(tree, get("q")) : null;
		const change = view.size && ((node) => (view.total[node] - view.old[node]) / view.size[node]);
		this.out.disabled = !root;
		this.icicle.draw({ tree, view, root, matches, change, all: "all", rest: this.hint() });
		show(this.words, this.sentence(matches));
		this.drawFunction();
		this.drawTable(matches);
	}

	hint() {
		return "Arrow keys choose a frame, Enter zooms in, Escape out, F shows callers and callees.";
	}

	sentence(matches) {
		const graph = this.graph(this.name), total = this.plain.total[0];
		let text = `${TITLES[this.name]}: ${weight(graph, total)}`;
		if (total !== graph.total - this.leftOut(graph).reduce((sum, [n]) => sum + n, 0))
			text += ` of ${weight(graph, graph.total)}`;
		else if (graph.unit !== "ns")
			text += ", of all programs and kernel threads since boot";
		for (const [n, whose] of this.leftOut(graph))
			text += `; ${plural(n, "sample")} ${whose} left out`;
		if (this.plain.size)
			text += `, before ${weight(graph, Math.round(this.plain.old[0]))}` +
				(this.plain.scale === 1 ? "" : " (scaled to the same total)") +
				". Red has grown, blue has shrunk; a frame is as wide as the larger of both.";
		if (matches) {
			const sum = matched(this.plain, matches);
			text += `. Found in ${weight(graph, sum)}, ${percent(sum, total)} of what is drawn`;
			say(`${get("q")}: ${percent(sum, total)}`);
		}
		return text + lackOf(graph);
	}

	// What is not drawn by default: how many samples, and whose.
	leftOut(graph) {
		return [["idle", "of idle CPUs are"], ["report", "of the profiler's own report are"]]
			.map(([key, whose], i) => [get(key) === "1" ? 0 : graph.outTotals[i + 1], whose])
			.filter(([n]) => n);
	}

	describe(view, node) {
		const graph = this.graph(this.name), total = view.total[0];
		const name = node ? this.tree.names[view.frame[node]] : "all";
		const share = percent(view.total[node], total);
		let text = `${name}: ${weight(graph, view.total[node])}, ${share} of what is drawn`;
		if (view.self[node] && view.self[node] !== view.total[node])
			text += `, itself ${weight(graph, view.self[node])}`;
		if (view.old)
			text += `, before ${weight(graph, Math.round(view.old[node]))}`;
		return text;
	}

	drawFunction() {
		const frame = get("fn") === "" ? -1 : Number(get("fn"));
		if (!(frame in this.tree.names)) {
			show(this.one);
			return;
		}
		const both = sandwich(this.tree, this.plain, frame);
		const name = this.tree.names[frame];
		const graph = this.graph(this.name);
		show(this.one, el("h3", {}, `${name}: callees and callers`),
			el("button", { type: "button", onclick: () => set({ fn: "" }, { at: "flame" }) }, "Close"),
			el("p", {}, `${name} and what it calls: ${weight(graph, both.callees.total[0])}`),
			this.below[0].element,
			el("p", {}, "Its callers, the nearest first:"), this.below[1].element,
			codeOf(this.data, frame));
		[both.callees, both.callers].forEach((view, i) => this.below[i].draw({
			tree: this.tree, view, root: 0, matches: null, all: name, rest: "" }));
	}

	drawTable(matches) {
		const graph = this.graph(this.name), total = this.plain.total[0];
		const rows = this.functions.filter((one) => !matches || matches[one.frame]);
		const kinds = this.data.kinds, isTime = graph.unit === "ns";
		const unit = isTime ? "(s)" : "samples", show = isTime ? (ns) => seconds(ns) : undefined;
		this.table.replaceChildren(grid({
			caption: `Functions: ${plural(rows.length, "name")}, the largest self first; shares are ` +
				"of what is drawn",
			columns: [
				{ title: "name" }, { title: `self ${unit}`, number: true, show },
				{ title: "self %", number: true }, { title: `total ${unit}`, number: true, show },
				{ title: "total %", number: true }, { title: "what" },
			],
			rows,
			cells: (one) => [this.tree.names[one.frame], one.self, percent(one.self, total),
				one.total, percent(one.total, total), kinds[this.tree.kinds[one.frame]]],
			top: 10,
			open: (i) => set({ fn: rows[i].frame }, { at: "flame" }),
		}));
	}
}
