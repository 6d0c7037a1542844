// SPDX-License-Identifier: BSD-2-Clause
// The numbers of a range of the time line: states by thread, and system calls.

import { percent, seconds } from "./format.js";
import { grid } from "./grid.js";
import { sums } from "./lanes.js";
import { set } from "./state.js";

export const STATES = ["running", "ready", "asleep", "unknown"]; // kinds of intervals
const CALL = 4; // another kind

const number = (title) => ({ title, number: true });

function stateTable(threads, from, to, title) {
	const shown = [], rows = [];
	for (const thread of threads) {
		const lane = thread.lanes[0];
		const found = sums(lane, from, to, (i) => lane.kind[i]);
		if (!found.length)
			continue;
		shown.push(thread);
		rows.push([thread.label, ...STATES.map((_, kind) => seconds(found[kind]?.ns ?? 0))]);
	}
	return rows.length ? grid({ caption: `Threads, ${title}`, top: 6, rows,
		columns: [{ title: "thread" }, ...STATES.map((state) => number(`${state} (s)`))],
		open: (i) => set({ tid: shown[i].id }, { at: "time" }) }) : null;
}

function callTable(threads, from, to, title, strings) {
	const calls = new Array(strings.length); // by name; of what is not a call: 0
	for (const lane of threads.flatMap((thread) => thread.lanes.slice(1)))
		sums(lane, from, to, (i) => (lane.kind[i] === CALL ? lane.name[i] : 0), calls);
	delete calls[0];
	const found = [];
	calls.forEach((one, name) => found.push([strings[name], one]));
	found.sort((a, b) => b[1].ns - a[1].ns);
	const total = found.reduce((sum, [, one]) => sum + one.ns, 0);
	return found.length ? grid({ caption: `System calls, ${title}`, top: 6,
		columns: [{ title: "call" }, ...["seconds", "%", "calls", "longest (s)"].map(number)],
		rows: found.map(([name, one]) => [name, seconds(one.ns), percent(one.ns, total), one.nr,
			seconds(one.max)]) }) : null;
}

export function rangeTables(threads, [from, to], strings) {
	const title = `${seconds(from)} s to ${seconds(to)} s`;
	return [stateTable(threads, from, to, title), callTable(threads, from, to, title, strings)];
}
