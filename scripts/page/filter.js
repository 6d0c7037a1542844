// SPDX-License-Identifier: BSD-2-Clause
// Chooses a program, thread, CPU or system call in all views.

import { el, show } from "./dom.js";
import { get, set, watch } from "./state.js";
import { FILTER_KEYS } from "./model.js";

const MAX_CHOICES = 2000;

// Returns the values that rows of all graphs have, the largest weight first.
function choices(data) {
	const { names } = data.tree, nrFrames = names.length;
	const found = { comm: new Map(), thread: new Map(), cpu: new Map(), call: new Map() };
	const add = (map, key, n) => map.set(key, (map.get(key) ?? 0) + n);
	for (const graph of Object.values(data.runs[0].graphs)) {
		for (let row = 0; row < graph.node.length; row++) {
			const comm = graph.task[row], tid = graph.tid[row], call = graph.call[row];
			const share = graph.weight[row] / graph.total;
			if (comm)
				add(found.comm, comm - 1, share);
			if (comm && tid)
				add(found.thread, tid * nrFrames + comm - 1, share);
			if (call)
				add(found.call, call - 1, share);
			add(found.cpu, graph.cpu[row], share);
		}
	}
	const texts = { comm: (frame) => names[frame], cpu: String, call: (frame) => names[frame],
		thread: (key) => `${Math.floor(key / nrFrames)} ${names[key % nrFrames]}` };
	return Object.fromEntries(Object.entries(found).map(([kind, map]) => [kind,
		[...map].sort((a, b) => b[1] - a[1]).slice(0, MAX_CHOICES).map(([key]) => texts[kind](key))]));
}

export function showFilter(data) {
	const form = document.getElementById("filter");
	form.addEventListener("submit", (event) => event.preventDefault());
	const all = choices(data);
	const of = (key, name, values) => {
		const select = el("select", { id: `filter-${key}`,
			onchange: () => set({ [key]: select.value, zoom: "" }) }, el("option", { value: "" }, "all"),
		...values.map(([value, text]) => el("option", { value }, text)));
		return { key, select, label: el("label", {}, `${name} `, select) };
	};
	const same = (list) => list.map((value) => [value, value]);
	const parts = [
		of("comm", "Program", same(all.comm)),
		of("tid", "Thread", all.thread.map((text) => [text.split(" ")[0], text])),
		of("cpu", "CPU", same(all.cpu)),
		of("call", "System call", same(all.call)),
	];
	const boxes = [["idle", " Idle"], ["report", " The profiler's report"]].map(([key, text]) => {
		const box = el("input", { type: "checkbox", id: `filter-${key}`,
			onchange: () => set({ [key]: box.checked ? "1" : "" }) });
		return { key, box, label: el("label", {}, box, text) };
	});
	const range = el("span", { class: "range" });
	const clear = el("button", { type: "button", onclick: () => set({ comm: "", pid: "", tid: "",
		cpu: "", call: "", from: "", to: "", idle: "", report: "" }) }, "Show all");
	show(form, ...parts.map((part) => part.label), ...boxes.map((one) => one.label), range, clear);
	watch([...FILTER_KEYS, "from", "to"], () => {
		for (const { key, select } of parts)
			select.value = get(key);
		for (const { key, box } of boxes)
			box.checked = get(key) === "1";
		range.textContent = get("from") ? `${(get("from") / 1e9).toFixed(6)} s to ` +
			`${(get("to") / 1e9).toFixed(6)} s` : "";
		clear.hidden = ![...FILTER_KEYS, "from"].some(get);
	});
}
