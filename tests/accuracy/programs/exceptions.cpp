// SPDX-License-Identifier: BSD-2-Clause
// Exceptions through functions with destructors, for user_chains.py; and what C++ adds to calls:
// virtual functions, templates, the standard library.
#include <algorithm>
#include <functional>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

static volatile unsigned int sink;

struct Guard {
	unsigned int nr;
	~Guard()
	{
		for (unsigned int i = 0; i < 30; i++)
			sink = sink + i + nr;
	}
};

struct Shape {
	virtual ~Shape() = default;
	virtual unsigned int area(unsigned int depth) const = 0;
};

struct Square : Shape {
	unsigned int area(unsigned int depth) const override
	{
		Guard guard{ depth };

		if (!depth)
			throw std::runtime_error("no area");
		return area(depth - 1) + depth;
	}
};

[[gnu::noinline]] static unsigned int measure(const Shape &shape, unsigned int depth)
{
	try {
		return shape.area(depth);
	} catch (const std::runtime_error &error) {
		Guard guard{ 1 };

		return error.what()[0];
	}
}

[[gnu::noinline]] static unsigned int sort_words(unsigned int nr)
{
	std::map<std::string, unsigned int> words;
	std::vector<std::string> sorted;

	for (unsigned int i = 0; i < 40; i++) {
		std::ostringstream text;

		text << "word " << (i * nr) % 17 << ' ' << i / 3.0;
		words[text.str()]++;
	}
	for (const auto &word : words)
		sorted.push_back(word.first);
	std::function<bool(const std::string &, const std::string &)> shorter =
		[](const std::string &a, const std::string &b) { return a.size() < b.size(); };
	std::stable_sort(sorted.begin(), sorted.end(), shorter);
	return sorted.front().size();
}

int main()
{
	Square square;

	for (unsigned int i = 0; i < 200; i++)
		sink = sink + measure(square, i % 9) + sort_words(i);
	return 0;
}
