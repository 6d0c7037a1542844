# SPDX-License-Identifier: BSD-2-Clause
"""Prints an event by the `print fmt:` of its format: a format of printf, and C expressions.

See Documentation/trace/events.rst of Linux. The parser knows REC->field, numbers, texts, casts,
C's operators except assignments, and the helpers __get_str, __get_dynamic_array, __print_symbolic
and __print_flags. Anything else raises ValueError, and the fields are printed as name=value.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from profiles.events import Field, Format, Value
from profiles.stacks import Symbols

Expression = Callable[[bytes], Value]

TOKEN = re.compile(
    r'\s*(?:(?P<text>"(?:\\.|[^"\\])*")|(?P<number>0[xX][0-9a-fA-F]+|\d+)[uUlL]*|(?P<name>\w+)|'
    r"(?P<sign>->|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^~!<>?:(){}\[\],]))"
)
CONVERSION = re.compile(
    r"%(?P<flags>[-+ #0]*)(?P<width>\*|\d{1,3})?(?:\.(?P<precision>\*|\d{1,3}))?"
    r"(?P<length>hh|h|ll|l|z|j|t)?(?P<kind>[diuxXocs%]|p[sSfFB]?)"
)
MAX_TOKENS = 500  # each of them is a step for each event
TYPE_WORDS = {"unsigned", "signed", "char", "short", "int", "long", "void", "struct", "const"}
TYPE_NAME = re.compile(r"[us](8|16|32|64)|u?int\d+_t|size_t|ssize_t|pid_t|bool")
PRECEDENCE = [
    ["||"],
    ["&&"],
    ["|"],
    ["^"],
    ["&"],
    ["==", "!="],
    ["<", "<=", ">", ">="],
    ["<<", ">>"],
    ["+", "-"],
    ["*", "/", "%"],
]
OPERATORS: dict[str, Callable[[int, int], int]] = {
    "||": lambda a, b: int(bool(a or b)),
    "&&": lambda a, b: int(bool(a and b)),
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "&": lambda a, b: a & b,
    "==": lambda a, b: int(a == b),
    "!=": lambda a, b: int(a != b),
    "<": lambda a, b: int(a < b),
    "<=": lambda a, b: int(a <= b),
    ">": lambda a, b: int(a > b),
    ">=": lambda a, b: int(a >= b),
    "<<": lambda a, b: a << (b & 63),
    ">>": lambda a, b: a >> (b & 63),
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: abs(a) // abs(b) * (-1 if (a < 0) != (b < 0) else 1) if b else 0,
    "%": lambda a, b: abs(a) % abs(b) * (-1 if a < 0 else 1) if b else 0,
}


def integer(value: Value) -> int:
    if not isinstance(value, int):
        raise ValueError(value)
    return value


def flags_text(value: int, delimiter: str, names: list[tuple[int, str]]) -> str:
    found = []
    for mask, name in names:
        if mask and value & mask == mask:
            found.append(name)
            value &= ~mask
    if value:
        found.append(f"{value & (1 << 64) - 1:#x}")
    return delimiter.join(found)


def symbol_text(value: int, names: list[tuple[int, str]]) -> str:
    for known, name in names:
        if value == known or value & (1 << 64) - 1 == known:
            return name
    return f"{value & (1 << 64) - 1:#x}"


class Parser:
    def __init__(self, text: str, fields: dict[str, Field]):
        self.tokens: list[tuple[str, str]] = []
        at, text = 0, text.strip()
        while at < len(text):
            found = TOKEN.match(text, at)
            if not found or not found.lastgroup:
                raise ValueError(text[at:])
            self.tokens.append((found.lastgroup, found[found.lastgroup]))
            at = found.end()
        if len(self.tokens) > MAX_TOKENS:
            raise ValueError(text)
        self.at, self.fields = 0, fields

    def peek(self, ahead: int = 0) -> str:
        at = self.at + ahead
        return self.tokens[at][1] if at < len(self.tokens) else ""

    def take(self, expected: str | None = None) -> str:
        token = self.peek()
        if not token or (expected and token != expected):
            raise ValueError(f"{expected or 'more'} expected, not {token or 'the end'}")
        self.at += 1
        return token

    def string(self) -> str:
        found = ""
        while self.at < len(self.tokens) and self.tokens[self.at][0] == "text":
            found += ast.literal_eval(self.take())
        return found

    def expression(self) -> Expression:
        condition = self.binary(0)
        if self.peek() != "?":
            return condition
        self.take()
        yes = self.expression()
        self.take(":")
        no = self.expression()
        return lambda data: yes(data) if condition(data) else no(data)

    def binary(self, level: int) -> Expression:
        if level == len(PRECEDENCE):
            return self.unary()
        left = self.binary(level + 1)
        while self.peek() in PRECEDENCE[level]:
            left = self.operation(OPERATORS[self.take()], left, self.binary(level + 1))
        return left

    @staticmethod
    def operation(
        operate: Callable[[int, int], int], left: Expression, right: Expression
    ) -> Expression:
        return lambda data: operate(integer(left(data)), integer(right(data)))

    def unary(self) -> Expression:
        sign = self.peek()
        if sign in ("-", "~", "!", "+"):
            self.take()
            operand = self.unary()
            return {
                "-": lambda data: -integer(operand(data)),
                "~": lambda data: ~integer(operand(data)),
                "!": lambda data: int(not operand(data)),
                "+": operand,
            }[sign]
        if sign == "(" and self.is_type(self.peek(1)):
            return self.cast()
        found = self.primary()
        while self.peek() == "[":
            self.take()
            found = self.element(found, self.expression())
            self.take("]")
        return found

    @staticmethod
    def element(array: Expression, index: Expression) -> Expression:
        def get(data: bytes) -> Value:
            values, at = array(data), integer(index(data))
            return values[at] if isinstance(values, list) and 0 <= at < len(values) else 0

        return get

    @staticmethod
    def is_type(word: str) -> bool:
        return word in TYPE_WORDS or TYPE_NAME.fullmatch(word) is not None

    def cast(self) -> Expression:
        self.take("(")
        words = []
        while self.peek() != ")":
            words.append(self.take())
        self.take(")")
        operand = self.unary()
        if "*" in words or "long" in words:
            bits = 64
        else:
            sizes = [re.search(r"\d+", word) for word in words]
            named = {"char": 8, "short": 16, "int": 32, "bool": 8}
            bits = next((int(size[0]) for size in sizes if size), 0)
            bits = bits or next((named[word] for word in words if word in named), 64)
        is_unsigned = "*" in words or any(word[0] == "u" for word in words)

        def convert(data: bytes) -> Value:
            value = operand(data)
            if not isinstance(value, int):
                return value
            value &= (1 << bits) - 1
            return value if is_unsigned or not value >> (bits - 1) else value - (1 << bits)

        return convert

    def primary(self) -> Expression:
        kind = self.tokens[self.at][0] if self.at < len(self.tokens) else ""
        if kind == "text":
            text = self.string()
            return lambda data: text
        token = self.take()
        if kind == "number":
            value = int(token, 16 if token[:2].lower() == "0x" else 10)
            return lambda data: value
        if token == "(":
            inner = self.expression()
            self.take(")")
            return inner
        if token == "REC":
            self.take("->")
            return self.field(self.take()).reader()
        return self.helper(token)

    def field(self, name: str) -> Field:
        if name not in self.fields:
            raise ValueError(f"no field {name}")
        return self.fields[name]

    def names(self) -> list[tuple[int, str]]:
        """Parses `, { value, "name" }` repeatedly."""
        found = []
        while self.peek() == ",":
            self.take()
            self.take("{")
            value = integer(self.expression()(b""))
            self.take(",")
            found.append((value, self.string()))
            self.take("}")
        return found

    def helper(self, name: str) -> Expression:
        self.take("(")
        if name in ("__get_str", "__get_dynamic_array"):
            found = self.field(self.take())
            get: Expression = found.reader() if name == "__get_str" else found.content
        elif name in ("__print_symbolic", "__print_flags"):
            value, delimiter = self.expression(), ""
            if name == "__print_flags":
                self.take(",")
                delimiter = self.string()
            names = self.names()
            if name == "__print_flags":
                text = lru_cache(lambda number: flags_text(number, delimiter, names))
            else:
                text = lru_cache(lambda number: symbol_text(number, names))
            get = lambda data: text(integer(value(data)))  # noqa: E731
        else:
            raise ValueError(f"{name} is not known")
        self.take(")")
        return get


@dataclass
class Conversion:
    flags: str
    width: int
    precision: int | None
    length: str
    kind: str

    def printer(self, kernel: Symbols | None) -> Callable[[Value], str]:
        """Returns a function that prints a value."""
        if self.kind in "sc":
            return self.text
        if self.kind[0] == "p":
            pointer = lru_cache(4096)(lambda value: self.pointer(value, kernel))
            return lambda value: pointer(integer(value) & (1 << 64) - 1)
        bits = 64 if self.length in ("l", "ll", "z", "j", "t") else 32
        precision = "" if self.precision is None else f".{self.precision}"
        kind = {"i": "d", "u": "d"}.get(self.kind, self.kind)
        form = f"%{self.flags}{self.width or ''}{precision}{kind}"
        mask, half = (1 << bits) - 1, 1 << (bits - 1)
        if self.kind in "di":
            return lambda value: form % ((integer(value) + half & mask) - half)
        return lambda value: form % (integer(value) & mask)

    def text(self, value: Value) -> str:
        text = chr(value & 0xFF) if self.kind == "c" and isinstance(value, int) else str(value)
        text = text if self.precision is None else text[: self.precision]
        return text.ljust(self.width) if "-" in self.flags else text.rjust(self.width)

    def pointer(self, value: int, kernel: Symbols | None) -> str:
        if len(self.kind) == 1:
            return f"0x{value:016x}"
        found = kernel.function(value) if kernel else None
        if not found:
            return f"0x{value:x}"
        start, name = found
        return f"{name}+{value - start:#x}" if self.kind in ("pS", "pB") else name


def conversions(template: str) -> list[str | Conversion]:
    """Splits printf's format. Raises ValueError for a width or precision of `*`."""
    parts: list[str | Conversion] = []
    at = 0
    while at < len(template):
        if template[at] != "%":
            end = template.find("%", at)
            end = len(template) if end < 0 else end
            parts.append(template[at:end])
            at = end
            continue
        found = CONVERSION.match(template, at)
        if not found or "*" in (found["width"], found["precision"]):
            raise ValueError(template[at:])
        at = found.end()
        if found["kind"] == "%":
            parts.append("%")
            continue
        precision = found["precision"]
        parts.append(
            Conversion(
                found["flags"],
                int(found["width"] or 0),
                None if precision is None else int(precision),
                found["length"] or "",
                found["kind"],
            )
        )
    return parts


def compile_format(format: Format, kernel: Symbols | None) -> Callable[[bytes], str]:
    """Returns a function that prints the text after the name of an event. Raises ValueError."""
    parser = Parser(format.print_format, {field.name: field for field in format.fields})
    parts = conversions(parser.string())
    arguments = []
    while parser.at < len(parser.tokens):
        parser.take(",")
        arguments.append(parser.expression())
    found = [part for part in parts if isinstance(part, Conversion)]
    if len(arguments) != len(found):
        raise ValueError("too many arguments, or too few")
    printers = [(one.printer(kernel), get) for one, get in zip(found, arguments)]
    template = "".join(
        part.replace("%", "%%") if isinstance(part, str) else "%s" for part in parts
    )
    return lambda data: template % tuple([put(get(data)) for put, get in printers])


class Printer:
    """Prints events. If a print format cannot be parsed, prints the fields as name=value."""

    def __init__(self, kernel: Symbols | None):
        self.kernel = kernel
        self.compiled: dict[int, Callable[[bytes], str] | None] = {}

    def text(self, format: Format, data: bytes) -> str:
        if format.id not in self.compiled:
            try:
                self.compiled[format.id] = compile_format(format, self.kernel)
            except (ValueError, SyntaxError, RecursionError):
                self.compiled[format.id] = None
        compiled = self.compiled[format.id]
        try:
            if compiled:
                return compiled(data)
        except (ValueError, TypeError, RecursionError):
            pass
        return " ".join(f"{name}={value}" for name, value in format.values(data).items())
