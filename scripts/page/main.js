// SPDX-License-Identifier: BSD-2-Clause
// Reads the data and shows each view. The first screen can be seen before those below it are made.

import { Compare } from "./compare.js";
import { load } from "./data.js";
import { el } from "./dom.js";
import { showFilter } from "./filter.js";
import { showFirst, showLimits, showLosses } from "./first.js";
import { Flame } from "./flame.js";
import { Memory } from "./memory.js";
import { scrollToView, start } from "./state.js";
import { showTables } from "./tables.js";
import { TimeLine } from "./timeline.js";
import { Waits } from "./waits.js";

function redrawOnChange(views) {
	const all = () => views.forEach((view) => view.redraw());
	let width = window.innerWidth;
	window.addEventListener("resize", () => {
		if (width !== window.innerWidth)
			requestAnimationFrame(all);
		width = window.innerWidth;
	});
	window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", all);
	window.addEventListener("beforeprint", all);
}

function listenToKeys() {
	document.addEventListener("keydown", (event) => {
		if (event.key !== "/" || /^(INPUT|SELECT)$/.test(event.target.tagName))
			return;
		document.getElementById("search").focus();
		event.preventDefault();
	});
}

// Returns when the browser has drawn what there is. A page that is hidden is not drawn.
function drawn() {
	return new Promise((resolve) => {
		requestAnimationFrame(() => setTimeout(resolve));
		setTimeout(resolve, 200);
	});
}

function mark(what) {
	document.documentElement.dataset[what] = String(Math.round(performance.now()));
}

async function main() {
	start();
	const data = await load();
	showFirst(data);
	showLosses(data);
	showFilter(data);
	const views = [new Flame(data)];
	redrawOnChange(views);
	listenToKeys();
	mark("first");
	await drawn();
	if (data.runs[0].graphs.waits.total)
		views.push(new Waits(data));
	if (data.events || data.runs[0].graphs.path)
		views.push(new TimeLine(data));
	if (data.runs[0].memory.length)
		views.push(new Memory(data));
	if (data.changes)
		views.push(new Compare(data));
	showTables(data);
	showLimits(data);
	document.getElementById("main").append(el("p", { id: "keys", class: "note" },
		"Keys: / searches; in a graph, arrows choose, Enter zooms in, Escape out, F shows a " +
		"function's callers and callees. The address keeps what is shown."));
	scrollToView();
	mark("ready");
}

main().catch((error) => {
	document.getElementById("sentence").textContent = `This page cannot be shown: ${error}`;
	throw error;
});
