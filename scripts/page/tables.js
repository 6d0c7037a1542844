// SPDX-License-Identifier: BSD-2-Clause
// System calls, profile points and all other tables of the report, with histograms.

import { el, section, svg } from "./dom.js";
import { seconds, time } from "./format.js";
import { grid } from "./grid.js";

const WIDTH = 132, HEIGHT = 22;

// Returns how a column is written: times in seconds with all digits, and shares in percent, as in
// the reports.
function writer(key) {
	const numbers = (write) => (value) => (typeof value === "number" ? write(value) : value);
	if (/_ns$|^ns$/.test(key))
		return numbers(seconds);
	return /_hundredths$/.test(key) ? numbers((value) => (value / 100).toFixed(2)) : undefined;
}

function title(key) {
	const unit = key.replace(/_ns$/, " (s)").replace(/_hundredths$/, " %");
	return key === "ns" ? "seconds" : unit.replaceAll("_", " ");
}

function graphic(label, ...children) {
	return svg("svg", { width: WIDTH, height: HEIGHT, viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img",
		"aria-label": label }, ...children);
}

// Returns a histogram of times by powers of two, of cycles.
function histogram(counts, hz) {
	const keys = Object.keys(counts).map(Number).sort((a, b) => a - b);
	if (!keys.length)
		return "-";
	const first = keys[0], nr = keys[keys.length - 1] - first + 1;
	const most = Math.max(...keys.map((key) => counts[key]));
	const step = WIDTH / Math.max(nr, 8);
	const ns = (key) => time((2 ** key * 1e9) / hz);
	const text = (key) => `${ns(key)} to ${ns(key + 1)}: ${counts[key]}`;
	return graphic(keys.map(text).join(", "), ...keys.map((key) => {
		const height = Math.max((counts[key] / most) * HEIGHT, 1);
		return svg("rect", { class: "bar", x: (key - first) * step, y: HEIGHT - height,
			width: Math.max(step - 1, 1), height }, svg("title", {}, text(key)));
	}));
}

// Returns a line from the median to the longest time, on a scale of powers of ten from 100 ns.
function spread(p50, p99, max) {
	if (![p50, p99, max].every((ns) => typeof ns === "number"))
		return "-";
	const share = (ns) => Math.max(0, Math.min(1, (Math.log10(Math.max(ns, 1)) - 2) / 9));
	const x = (ns) => share(ns) * (WIDTH - 8) + 4;
	const label = `median at most ${time(p50)}, 99 % at most ${time(p99)}, longest ${time(max)}`;
	const dot = (ns, r) => svg("circle", { class: "bar", cx: x(ns), cy: HEIGHT / 2, r });
	return graphic(label, svg("title", {}, label), svg("line", { class: "line", x1: x(p50),
		x2: x(max), y1: HEIGHT / 2, y2: HEIGHT / 2 }), dot(p50, 5), dot(p99, 3), dot(max, 2));
}

function withPicture(one, hz) {
	const at = (key) => one.keys.indexOf(key);
	const buckets = at("pairs_by_log2_cycles");
	if (buckets >= 0) {
		return { title: "histogram", cells: one.rows.map((row) => histogram(row[buckets] ?? {}, hz)),
			hidden: buckets };
	}
	if (at("p50_bound_ns") >= 0 && at("max_ns") >= 0) {
		return { title: "median, 99 %, longest", hidden: -1, cells: one.rows.map((row) =>
			spread(row[at("p50_bound_ns")], row[at("p99_bound_ns")], row[at("max_ns")])) };
	}
	return null;
}

// The column that names a row comes first.
const NAMES = ["syscall", "point", "what", "lock", "function", "process", "owner", "name", "task"];

export function tableOf(one, hz, top) {
	const picture = withPicture(one, hz);
	const first = one.keys.indexOf(NAMES.find((name) => one.keys.includes(name)));
	const others = one.keys.map((_, i) => i).filter((i) => i !== picture?.hidden && i !== first);
	const shown = first < 0 ? others : [first, ...others];
	const isNumber = (i) => one.rows.some((row) => typeof row[i] === "number");
	const columns = shown.map((i) => ({ title: title(one.keys[i]), number: isNumber(i),
		show: writer(one.keys[i]) }));
	const rows = one.rows.map((row) => shown.map((i) => row[i]));
	if (picture) {
		columns.splice(1, 0, { title: picture.title });
		rows.forEach((row, i) => row.splice(1, 0, picture.cells[i]));
	}
	return el("div", { class: "table", "data-file": one.file },
		one.rows.length ? grid({ caption: one.title, columns, rows, top }) : el("h3", {}, one.title),
		...one.notes.map((note) => el("p", { class: "note" }, note)));
}

// Tables of the view of waits.
export const WAIT_FILES = ["waits", "waits_locks", "waits_tasks", "waits_calls", "spinlocks"];
// And of that of used memory.
export const MEMORY_FILES = ["working_set", "working_set_regions", "working_set_memory"];
const FIRST = [
	["calls", "System calls", "Which calls are made, how long do they take, and which fail?",
		["strace", "processes", "files", "calls"]],
	["points", "Profile points", "How long do marked sections of the kernel take?",
		["points", "function_calls"]],
	["tables", "All tables", "What else does the report know?", []],
];

export function showTables(data) {
	const run = data.runs[0], hz = run.meta.tsc_hz || 1e9;
	const shown = [...(run.graphs.waits.total ? WAIT_FILES : []),
		...(run.memory.length ? MEMORY_FILES : [])];
	const left = new Set(run.tables.filter((one) => !shown.includes(one.file)));
	for (const [id, name, question, files] of FIRST) {
		const these = [...left].filter((one) => !files.length || files.includes(one.file));
		if (!these.length)
			continue;
		these.forEach((one) => left.delete(one));
		const node = section(id, name, question);
		for (const one of these) {
			const isClosed = id === "tables";
			const inside = tableOf(one, hz, 12);
			node.append(isClosed
				? el("details", {}, el("summary", {}, one.title || one.file), inside) : inside);
		}
	}
}
