// SPDX-License-Identifier: BSD-2-Clause
// The time line: what each CPU and thread did when, with the critical path drawn through it. A
// range that is chosen restricts the other views.

import { color, el, fit, prepare, section, show } from "./dom.js";
import { count, plural, seconds, time } from "./format.js";
import { firstAfter, readLane, sums, visible } from "./lanes.js";
import { rangeTables, STATES } from "./range.js";
import { get, set, watch } from "./state.js";

const HEAD = 18, STATE = 12, LANE = 9, GAP = 5, LABEL = 130; // pixels
const MAX_VIEW_PX = 520;

function readTracks(data) {
	const { events, bytes, strings } = data;
	const lanes = (raw) => raw.map((one) => readLane(bytes, one));
	const cpus = events.cpus.map(([cpu, raw]) => ({ isCpu: true, id: cpu, label: `CPU ${cpu}`,
		lanes: lanes(raw) }));
	const tasks = events.tasks.map(([tid, pid, name, raw]) => ({ id: tid, pid, name: strings[name],
		label: `${strings[name]} ${tid}`, lanes: lanes(raw) }));
	return [...cpus, ...tasks].filter((track) => track.lanes.length);
}

// The critical path of an export without events still has a time line: one track of it.
function pathTrack(path) {
	return path && { isPath: true, label: "critical path", lanes: [], path };
}

export class TimeLine {
	constructor(data) {
		this.data = data;
		this.events = data.events;
		this.path = data.runs[0].graphs.path;
		this.all = [pathTrack(this.path), ...(this.events ? readTracks(data) : [])].filter(Boolean);
		const first = this.path ? this.path.from : Infinity;
		const nr = this.path?.start.length;
		const last = nr ? this.path.start[nr - 1] + this.path.weight[nr - 1] : 0;
		// With a path, its time is the run's: after it the kernel prints the report and the export.
		this.from = this.path ? first : this.events.from;
		this.to = Math.max(this.path ? last : this.events.to, this.from + 1);
		this.canvas = el("canvas", { tabindex: "0", role: "application", "aria-describedby": "keys",
			"aria-label": "Time line: left and right move, plus and minus zoom, up and down choose a " +
			"track, Shift with left and right chooses a range. The table below has its numbers." });
		this.spacer = el("div", { class: "spacer" }, this.canvas);
		this.scroller = el("div", { class: "time-scroll", onscroll: () => this.paint() }, this.spacer);
		this.info = el("p", { class: "info", "aria-live": "polite" });
		this.table = el("div", { id: "range-table" });
		this.section = section("time", "Time line",
			"What ran when, and what did the others wait for? Drag to choose a range.");
		this.section.append(this.controls(), this.scroller, this.info, this.table);
		this.cursor = 0;
		this.listen();
		watch(["view", "from", "to", "comm", "tid", "cpu"], () => this.redraw());
	}

	controls() {
		const button = (text, call) => el("button", { type: "button", onclick: call }, text);
		const swatches = ["running", "ready", "asleep", "call", "path"].flatMap((name) =>
			[el("span", { class: `swatch ${name === "running" ? "user" : name}`, "aria-hidden": "true" }),
				` ${name === "path" ? "critical path" : name} `]);
		return el("div", { class: "controls" }, button("Zoom in", () => this.zoom(0.5)),
			button("Zoom out", () => this.zoom(2)),
			button("Zoom to range", () => get("from") && this.look(+get("from"), +get("to"))),
			button("Whole run", () => set({ view: "", from: "", to: "" }, { at: "time" })),
			el("span", { class: "legend" }, ...swatches));
	}

	get range() {
		const [a, b] = get("view").split("-").map(Number);
		return a >= 0 && b > a ? [a, b] : [this.from, this.to];
	}

	look(from, to) {
		const length = Math.max(Math.min(to - from, this.to - this.from), 10);
		const start = Math.min(Math.max(from, this.from), this.to - length);
		const isAll = length >= this.to - this.from;
		set({ view: isAll ? "" : `${Math.round(start)}-${Math.round(start + length)}` },
			{ at: "time", replaces: true });
	}

	zoom(factor, at = 0.5) {
		const [from, to] = this.range, middle = from + (to - from) * at;
		this.look(middle - (middle - from) * factor, middle + (to - middle) * factor);
	}

	move(share) {
		const [from, to] = this.range;
		this.look(from + (to - from) * share, to + (to - from) * share);
	}

	timeAt(x) {
		const [from, to] = this.range;
		const share = (x - LABEL) / (this.canvas.clientWidth - LABEL);
		return Math.round(from + (to - from) * Math.min(Math.max(share, 0), 1));
	}

	choose(a, b) {
		const [from, to] = a < b ? [a, b] : [b, a];
		set(to - from < 1 ? { from: "", to: "" } : { from, to }, { at: "time", replaces: true });
	}

	listen() {
		let start = null;
		this.canvas.addEventListener("pointerdown", (event) => {
			start = event.offsetX >= LABEL ? event.offsetX : null;
			if (start !== null)
				this.canvas.setPointerCapture(event.pointerId);
		});
		this.canvas.addEventListener("pointermove", (event) => {
			if (start !== null && Math.abs(event.offsetX - start) > 3) {
				this.drag = [start, event.offsetX];
				this.paint();
			} else {
				this.say(this.words(event.offsetX, event.offsetY));
			}
		});
		this.canvas.addEventListener("pointerup", (event) => {
			if (this.drag)
				this.choose(this.timeAt(this.drag[0]), this.timeAt(event.offsetX));
			this.drag = start = null;
		});
		this.canvas.addEventListener("wheel", (event) => {
			if (!event.ctrlKey && !event.shiftKey)
				return;
			const at = (event.offsetX - LABEL) / (this.canvas.clientWidth - LABEL);
			if (event.ctrlKey)
				this.zoom(event.deltaY > 0 ? 1.25 : 0.8, Math.min(Math.max(at, 0), 1));
			else
				this.move(event.deltaY > 0 ? 0.1 : -0.1);
			event.preventDefault();
		}, { passive: false });
		this.canvas.addEventListener("keydown", (event) => this.key(event));
	}

	key(event) {
		const [from, to] = this.range, step = (to - from) / 20;
		const keys = {
			ArrowLeft: () => event.shiftKey ? this.grow(-step) : this.move(-0.2),
			ArrowRight: () => event.shiftKey ? this.grow(step) : this.move(0.2),
			ArrowUp: () => this.step(-1), ArrowDown: () => this.step(1),
			"+": () => this.zoom(0.5), "=": () => this.zoom(0.5), "-": () => this.zoom(2),
			Escape: () => set({ view: "", from: "", to: "" }, { at: "time" }),
		};
		if (!keys[event.key])
			return;
		keys[event.key]();
		event.preventDefault();
	}

	grow(step) {
		const [from, to] = this.range;
		const a = get("from") ? Number(get("from")) : (from + to) / 2;
		const b = get("to") ? Number(get("to")) : a;
		this.choose(Math.round(a), Math.round(Math.min(Math.max(b + step, a + 1), this.to)));
	}

	step(by) {
		this.cursor = Math.min(Math.max(this.cursor + by, 0), this.tracks.length - 1);
		const { y, height } = this.tracks[this.cursor];
		if (y < this.scroller.scrollTop || y + height > this.scroller.scrollTop + this.height)
			this.scroller.scrollTop = y;
		this.paint();
		this.say(this.trackWords(this.tracks[this.cursor]));
	}

	say(text) {
		this.info.textContent = text || this.hint();
	}

	hint() {
		const lost = this.events?.lost.reduce((sum, one) => sum + one[3], 0);
		return (this.events ? plural(this.events.events, "event") : "The export has no events") +
			(lost ? `; ${count(lost)} were lost, where the state is unknown` : "");
	}

	// Which tracks are shown, and where.
	place() {
		const comm = get("comm"), tid = get("tid"), cpu = get("cpu");
		let y = HEAD;
		this.tracks = this.all.filter((track) => track.isPath || (track.isCpu
			? cpu === "" || track.id === Number(cpu)
			: (!comm || track.name === comm) && (tid === "" || track.id === Number(tid))));
		for (const track of this.tracks) {
			track.y = y;
			track.height = STATE + Math.max(track.lanes.length - 1, 0) * LANE + GAP;
			y += track.height;
		}
		this.bottom = y;
		this.height = Math.min(y + 2, MAX_VIEW_PX);
		this.cursor = Math.min(this.cursor, Math.max(this.tracks.length - 1, 0));
	}

	redraw() {
		this.place();
		this.spacer.style.setProperty("height", `${this.bottom + 2}px`);
		this.scroller.style.setProperty("height", `${this.height}px`);
		this.paint();
		this.say("");
		this.drawTable();
	}

	paint() {
		const { context, width } = prepare(this.canvas, this.height);
		const top = this.scroller.scrollTop, [from, to] = this.range;
		const colors = [color("user"), color("ready"), color("asleep"), color("cut"), color("call"),
			color("kernel"), color("soft")];
		this.nr = 0;
		const area = { context, width: width - LABEL, from, to, colors, text: color("on-frame") };
		for (const [i, track] of this.tracks.entries()) {
			const y = track.y - top;
			if (y + track.height < 0 || y > this.height)
				continue;
			context.fillStyle = color(i === this.cursor ? "link" : "soft");
			context.fillText(fit(context, track.label, LABEL - 8), 2, y + STATE / 2);
			track.lanes.forEach((lane, k) => this.paintLane(area, lane,
				y + (k ? STATE + (k - 1) * LANE : 0), k ? LANE : STATE));
			if (track.isPath)
				this.paintPath(area, y);
		}
		this.paintPathThrough(area, top);
		this.paintAxis(area, width);
		this.paintRange(area);
		this.canvas.dataset.nodes = this.nr;
	}

	paintLane(area, lane, y, height) {
		const { context, from, to, width, colors, text } = area;
		this.nr += visible(lane, from, to, width, (i, x, w) => {
			context.fillStyle = colors[lane.kind[i]];
			context.fillRect(LABEL + x, y, w, height - 1);
			const name = w > 30 ? fit(context, this.data.strings[lane.name[i]], w - 4) : "";
			if (name) {
				context.fillStyle = text;
				context.fillText(name, LABEL + x + 2, y + height / 2);
			}
		});
	}

	pathLane() {
		const { start, weight } = this.path;
		return { start, ns: weight };
	}

	nameOfPath(i) {
		const { tree } = this.data;
		return tree.names[tree.frame[this.path.node[i]]];
	}

	paintPath(area, y) {
		const { context, from, to, width } = area, fill = color("path");
		this.nr += visible(this.pathLane(), from, to, width, (i, x, w) => {
			context.globalAlpha = this.path.runs?.[i] ? 1 : 0.45;
			context.fillStyle = fill;
			context.fillRect(LABEL + x, y, w, STATE - 1);
			context.globalAlpha = 1;
			const name = w > 30 ? fit(context, this.nameOfPath(i), w - 4) : "";
			context.fillStyle = color("page");
			if (name)
				context.fillText(name, LABEL + x + 2, y + STATE / 2);
		});
	}

	// Draws the path over the threads that it leads through.
	paintPathThrough(area, top) {
		if (!this.path || !this.events)
			return;
		const { context, from, to, width } = area;
		const byTid = new Map(this.tracks.filter((track) => !track.isCpu && !track.isPath)
			.map((track) => [track.id, track]));
		context.strokeStyle = color("path");
		context.lineWidth = 1;
		context.beginPath();
		let last = null;
		this.nr += visible(this.pathLane(), from, to, width, (i, x, w) => {
			const track = byTid.get(this.path.tid[i]);
			if (!track)
				return;
			const y = track.y - top + STATE - 1;
			if (last !== null)
				context.lineTo(LABEL + x, y);
			else
				context.moveTo(LABEL + x, y);
			context.lineTo(LABEL + x + w, y);
			last = y;
		});
		context.stroke();
	}

	paintAxis({ context, from, to }, width) {
		context.fillStyle = color("page");
		context.fillRect(0, 0, width, HEAD - 2);
		context.fillStyle = color("soft");
		const nr = Math.max(Math.floor((width - LABEL) / 130), 1);
		const digits = Math.min(Math.max(Math.ceil(-Math.log10((to - from) / 1e9 / nr)) + 1, 1), 9);
		for (let i = 0; i < nr; i++) {
			const x = LABEL + ((width - LABEL) * i) / nr;
			context.fillText(`${seconds(Math.round(from + ((to - from) * i) / nr), digits)} s`, x + 2, 8);
			context.fillRect(x, 0, 1, HEAD - 3);
		}
	}

	paintRange({ context, from, to, width }) {
		let range = null;
		if (this.drag)
			range = this.drag;
		else if (get("from"))
			range = [get("from"), get("to")].map((ns) => LABEL + ((ns - from) / (to - from)) * width);
		if (!range)
			return;
		const a = Math.max(Math.min(...range), LABEL);
		const b = Math.min(Math.max(...range), LABEL + width);
		context.globalAlpha = 0.18;
		context.fillStyle = color("link");
		context.fillRect(a, 0, Math.max(b - a, 1), this.height);
		context.globalAlpha = 1;
	}

	words(x, y) {
		const at = y + this.scroller.scrollTop;
		const track = this.tracks.find((one) => at >= one.y && at < one.y + one.height);
		if (!track || x < LABEL)
			return "";
		const ns = this.timeAt(x);
		const parts = track.isPath ? [this.pathWords(ns)] : track.lanes.map((lane) =>
			this.laneWords(lane, ns));
		const text = parts.filter(Boolean).join("; ") || "nothing known";
		return `${seconds(ns)} s, ${track.label}: ${text}`;
	}

	laneWords(lane, ns) {
		const i = firstAfter(lane, ns);
		if (i >= lane.start.length || lane.start[i] > ns)
			return "";
		const name = this.data.strings[lane.name[i]], state = STATES[lane.kind[i]];
		const text = [state, name].filter(Boolean).join(state === "asleep" ? " in " : ", ");
		return `${text} for ${time(lane.ns[i])}`;
	}

	pathWords(ns) {
		const i = firstAfter(this.pathLane(), ns);
		return i < this.path.start.length && this.path.start[i] <= ns
			? `${this.nameOfPath(i)} in thread ${this.path.tid[i]} for ${time(this.path.weight[i])}` : "";
	}

	get chosen() {
		return get("from") ? [Number(get("from")), Number(get("to"))] : this.range;
	}

	trackWords(track) {
		const [from, to] = this.chosen;
		if (track.isPath || !track.lanes.length)
			return track.label;
		const found = sums(track.lanes[0], from, to, (i) => track.lanes[0].kind[i]);
		return `${track.label}: ${found.map((sum, kind) =>
			`${STATES[kind]} ${seconds(sum.ns, 6)} s`).filter(Boolean).join(", ")}`;
	}

	drawTable() {
		const threads = this.tracks.filter((track) => !track.isCpu && !track.isPath);
		show(this.table, ...rangeTables(threads, this.chosen, this.data.strings));
	}
}
