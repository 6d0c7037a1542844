// SPDX-License-Identifier: BSD-2-Clause
// Reads the data and shows each view.

import { Compare } from "./compare.js";
import { load } from "./data.js";
import { el } from "./dom.js";
import { showFilter } from "./filter.js";
import { showFirst, showLimits } from "./first.js";
import { Flame } from "./flame.js";
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

async function main() {
	start();
	const data = await load();
	showFirst(data);
	showFilter(data);
	const views = [new Flame(data)];
	if (data.runs[0].graphs.waits.total)
		views.push(new Waits(data));
	if (data.events || data.runs[0].graphs.path)
		views.push(new TimeLine(data));
	if (data.changes)
		views.push(new Compare(data));
	showTables(data);
	showLimits(data);
	document.getElementById("main").append(el("p", { id: "keys", class: "note" },
		"Keys: / searches; in a graph, arrows choose, Enter zooms in, Escape out, F shows a " +
		"function's callers and callees. The address keeps what is shown."));
	redrawOnChange(views);
	listenToKeys();
	scrollToView();
	document.documentElement.dataset.ready = String(Math.round(performance.now()));
}

main().catch((error) => {
	document.getElementById("sentence").textContent = `This page cannot be shown: ${error}`;
	throw error;
});
