// SPDX-License-Identifier: BSD-2-Clause
// The first screen: the report's first sentence, one bar of time, and what was lost or is
// approximate.

import { el, section, show } from "./dom.js";
import { count, percent, seconds, weight } from "./format.js";
import { callers, functions } from "./model.js";

const FINDING = /^(\d+) % of (CPU time|wall time) /;

// Returns, of two runs, what has changed most: of the samples, a function's own.
function changeSentence({ tree, runs }) {
	if (!runs.every((run) => run.graphs.cpu?.total))
		return "";
	const views = runs.map((run) => callers(tree, run.graphs.cpu));
	const [now, old] = views.map((view) => new Map(functions(tree, view).map(
		(one) => [one.frame, one.self])));
	const by = (frame) => (now.get(frame) ?? 0) - (old.get(frame) ?? 0);
	const frames = [...new Set([...now.keys(), ...old.keys()])];
	const most = frames.reduce((a, b) => (Math.abs(by(b)) > Math.abs(by(a)) ? b : a));
	const text = `${count(views[1].total[0])} samples before, ${count(views[0].total[0])} now`;
	return by(most) ? `${text}; the largest change is ${tree.names[most]}: ` +
		`${count(old.get(most) ?? 0)} before, ${count(now.get(most) ?? 0)} now` : `${text}, in the ` +
		"same functions";
}

function sentences(run, changes) {
	const findings = run.lines.filter((line) => FINDING.test(line));
	const heading = (run.lines[0] ?? "").replace(/^profile: report \d+: /, "");
	const facts = run.lines.filter((line) => line.startsWith("calls"));
	const rest = run.lines.slice(1).filter((line) => !FINDING.test(line) && !facts.includes(line));
	const found = findings.length ? findings : [heading || fallback(run)];
	const chain = run.path?.sentence && el("p", { class: "chain" }, run.path.sentence);
	// A path that is mostly not recorded, or of many parts, says less than the findings.
	const isLate = chain && (run.path.unknown > run.path.total / 2 ||
		2 * Number.parseInt(run.path.sentence) < Number.parseInt(findings[0]));
	return [
		isLate ? null : chain,
		changes && el("p", { class: "finding" }, changes),
		...found.map((text, i) => el("p", { class: i || changes ? "" : "finding" }, text)),
		...facts.map((text) => el("p", { class: "fact" }, text)),
		isLate ? chain : null,
		findings.length ? el("p", { class: "heading" }, heading) : null,
		...rest.map((text) => el("p", { class: "more" }, text)),
	];
}

// Says what the samples say, for an export without the first lines of a report.
function fallback(run) {
	const graph = run.graphs.cpu ?? run.graphs.waits;
	return graph ? `${weight(graph, graph.total)} ${graph === run.graphs.cpu ? "taken" : "waited"}`
		: "This export has neither samples nor waits.";
}

// Returns the parts of the bar: those of the critical path, or else the account of all CPUs.
function partsOf(run) {
	if (run.path) {
		const { total, parts, unknown, note } = run.path;
		const known = unknown ? `, known for the last ${seconds(total - unknown)} s` : "";
		return { title: `Wall time: ${seconds(total)} s along the critical path${known}`, parts,
			unknown, note };
	}
	const accounts = run.tables.find((one) => one.file === "accounts");
	if (!accounts?.rows.length)
		return null;
	const rows = accounts.rows.map(([name, cycles]) => [name, Number(cycles)]);
	const ns = 1e9 / (run.meta.tsc_hz || 1e9);
	const all = rows.filter(([, n]) => n > 0).map(([name, n]) => [name, Math.round(n * ns)]);
	const total = all.reduce((sum, [, n]) => sum + n, 0);
	return { title: `${accounts.title} since boot: ${seconds(total)} s`, unknown: 0,
		parts: all.sort((a, b) => b[1] - a[1]),
		note: "This is the time of CPUs, also before the program ran. This export has no critical " +
			"path, which would say what the run had to wait for." };
}

const SHADES = 9;

function bar(run) {
	const found = partsOf(run);
	if (!found)
		return null;
	const parts = found.parts.map(([name, n], i) => [name, n, `part part${i % SHADES}`]);
	// It comes first, because it is the begin of the time.
	if (found.unknown)
		parts.unshift(["not recorded", found.unknown, "part not-recorded"]);
	const total = parts.reduce((sum, [, n]) => sum + n, 0);
	const strip = el("div", { class: "strip", "aria-hidden": "true" }, ...parts.map(
		([name, n, shade]) => el("span", { class: shade, title: `${name} ${seconds(n)} s`,
			style: { "flex-grow": String(n / total) } })));
	const list = el("ol", { class: "parts", "aria-label": "Parts of the bar" }, ...parts.map(
		([name, n, shade]) => el("li", {}, el("span", { class: `swatch ${shade}`,
			"aria-hidden": "true" }), el("span", { class: "name" }, name), " ",
		el("b", {}, `${seconds(n, 6)} s`), ` ${percent(n, total)}`)));
	return el("figure", {}, el("figcaption", {}, found.title), strip, list,
		el("p", { class: "note" }, found.note));
}

export function showFirst(data) {
	const [run, old] = data.runs;
	const name = run.meta.path.split("/").pop();
	document.title = `${old ? `${old.meta.path.split("/").pop()} and ` : ""}${name} - Lego Profile`;
	document.getElementById("title").textContent = document.title;
	show(document.getElementById("sentence"), ...sentences(run, old && changeSentence(data)));
	show(document.getElementById("bar"), bar(run));
}

const WORDS = [
	["asleep", "A thread is off its CPU until something wakes it, whatever it waits for."],
	["sleep", "A thread is asleep for a time that it has chosen, as by nanosleep()."],
	["ready", "A thread could run, but does not. On the critical path: while its CPU is idle, or " +
		"has a process outside of the report; what other threads do there is on the path itself."],
	["for a CPU", "In the line \"waited\": all ready time, of all threads added up."],
	["not recorded", "The ring of events was full and has lost its oldest events, so nobody knows " +
		"what this time went to. It is no part of the critical path. Shares are of all wall time."],
	["a CPU", "Among the waits: ready time of threads that did not sleep, but were preempted."],
	["start", "A new thread waits until it runs for the first time."],
	["program start", "The kernel loads the first program."],
];

// What was lost or is approximate: on the first screen in one line, and in full below.
export function showLosses(data) {
	const run = data.runs[0];
	const lost = run.limits.filter((text) => /were lost|had no room|damaged|missing/.test(text));
	const link = el("p", { id: "losses", class: lost.length ? "lost" : "" },
		lost.length ? `Lost: ${lost.slice(0, 3).join("; ")}. ` : "Nothing was lost. ",
		el("a", { href: "#limits" }, "What is approximate"));
	document.getElementById("bar").after(link);
}

export function showLimits(data) {
	const run = data.runs[0];
	const node = section("limits", "Lost or approximate", "What do these numbers not say?");
	const graph = run.graphs.cpu;
	const chance = graph?.total && `A share of samples is right within chance: of ${graph.total} ` +
		`samples, 50 % is right to ${(100 * Math.sqrt(1 / graph.total)).toFixed(2)} points in 19 ` +
		"of 20 cases. System calls, waits, points and the account of CPUs are counted, not sampled.";
	const lines = [...run.limits, chance].filter(Boolean);
	node.append(el("ul", {}, ...lines.map((text) => el("li", {}, text))),
		el("h3", {}, "Words"), el("dl", {}, ...WORDS.flatMap(([word, text]) =>
			[el("dt", {}, word), el("dd", {}, text)])));
}
