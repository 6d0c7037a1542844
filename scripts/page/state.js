// SPDX-License-Identifier: BSD-2-Clause
// The state of the page is its address: #view?key=value. So a reload or a link shows the same, and
// the browser's Back undoes. A view reads what it needs, and is drawn again when that has changed.

const listeners = [];
let view = "";
let values = new URLSearchParams();

function parse() {
	const text = location.hash.slice(1);
	const at = text.indexOf("?");
	view = at < 0 ? text : text.slice(0, at);
	values = new URLSearchParams(at < 0 ? "" : text.slice(at + 1));
}

export function get(key) {
	return values.get(key) ?? "";
}

export function currentView() {
	return view;
}

function write(replaces) {
	const text = values.toString();
	const hash = `#${view}${text ? `?${text}` : ""}`;
	if (hash === location.hash || (hash === "#" && !location.hash))
		return;
	if (replaces)
		history.replaceState(null, "", hash);
	else
		history.pushState(null, "", hash);
}

// Changes values: an empty one is left out. Typing and dragging replace the entry of the history.
export function set(changes, { at = view, replaces = false } = {}) {
	const changed = [];
	for (const [key, value] of Object.entries(changes)) {
		const text = value === null || value === undefined ? "" : String(value);
		if (get(key) !== text)
			changed.push(key);
		if (text)
			values.set(key, text);
		else
			values.delete(key);
	}
	view = at;
	write(replaces);
	tell(changed);
}

function tell(changed) {
	for (const listener of listeners) {
		if (listener.keys.some((key) => changed.includes(key)))
			listener.call();
	}
}

// Calls a function now, and when one of the values has changed.
export function watch(keys, call) {
	listeners.push({ keys, call });
	call();
}

function followAddress() {
	const old = new URLSearchParams(values);
	const hadKeys = new Set(old.keys());
	const hash = location.hash;
	parse();
	// A link to a view (#points) keeps the state of all views.
	if (!hash.includes("?") && hadKeys.size && document.getElementById(view)) {
		values = old;
		write(true);
	}
	const keys = new Set([...hadKeys, ...values.keys()]);
	tell([...keys].filter((key) => (old.get(key) ?? "") !== (values.get(key) ?? "")));
	scrollToView();
}

export function scrollToView() {
	document.getElementById(view)?.scrollIntoView();
}

export function start() {
	parse();
	window.addEventListener("popstate", followAddress);
}
