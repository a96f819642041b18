"""Reads out of klinic's source which messages its errors can carry, as templates with ``{}`` for what is filled in."""

from __future__ import annotations

import ast
from pathlib import Path

# Already in the reader's language, or a near word whose template stands in errors.py.
SPOKEN = {"did_you_mean", "say", "tell", "call"}
PRINTED = {"complaint", "said", "_complain"}  # what is printed without being raised


def name_of(node):
    return ast.unparse(node).split(".")[-1]


class Module:
    """One module's messages: literals and f-strings among the arguments of its errors."""

    def __init__(self, path, errors):
        self.path, self.tree = path, ast.parse(path.read_text(encoding="utf-8"))
        self.errors, self.unknown, self.found = errors, set(), {}
        self.functions = {n.name: n for n in ast.walk(self.tree) if isinstance(n, ast.FunctionDef)}
        self.constants = {
            target.id: n.value
            for n in self.tree.body
            if isinstance(n, ast.Assign)
            for target in n.targets
            if isinstance(target, ast.Name)
        }

    def read(self):
        self.walk(self.tree, self.tree)
        return self

    def walk(self, node, scope):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Call) and name_of(child.func) in self.errors | PRINTED:
                self.call(child, scope)
            self.walk(child, child if isinstance(child, ast.FunctionDef) else scope)

    def call(self, node, scope):
        wanted = [a for i, a in enumerate(node.args) if i in (0, 2)]
        wanted += [k.value for k in node.keywords if k.arg in ("what", "hint")]
        if name_of(node.func) == "said":
            wanted = wanted[:1]
        for argument in wanted:
            for template in self.texts(argument, scope):
                self.found.setdefault(template, f"{self.path.name}:{node.lineno}")

    def texts(self, node, scope):
        """Templates an expression can become."""
        match node:
            case ast.Constant(value=str(text)):
                return [text]
            case ast.Constant():
                return []
            case ast.JoinedStr(values=parts):
                text = "".join(p.value if isinstance(p, ast.Constant) else "{}" for p in parts)
                inner = [p.value for p in parts if isinstance(p, ast.FormattedValue)]
                choices = [v for v in inner if isinstance(v, ast.BoolOp | ast.IfExp)]
                own = [t for v in choices for t in self.constants_of(v)]
                return own if text == "{}" else [text, *own]
            case ast.BoolOp(values=values):
                return [t for value in values for t in self.texts(value, scope)]
            case ast.IfExp(body=body, orelse=other):
                return self.texts(body, scope) + self.texts(other, scope)
            case ast.BinOp(op=ast.Add(), left=left, right=right):
                return [
                    a + b
                    for a in self.texts(left, scope) or ["{}"]
                    for b in self.texts(right, scope) or ["{}"]
                ]
            case ast.Call(func=ast.Attribute(value=inner, attr=("replace" | "strip"))):
                return self.texts(inner, scope)
            case ast.Call(func=ast.Attribute(value=ast.Constant(), attr="join")):
                return []
            case ast.Call(func=function) if name_of(function) in SPOKEN:
                return []
            case ast.Call(func=ast.Name(id=name)) if name in self.functions:
                inner = self.functions[name]
                returns = [n.value for n in ast.walk(inner) if isinstance(n, ast.Return)]
                return [t for value in returns for t in self.texts(value, inner)]
            case ast.Subscript(value=ast.Name(id=name)) if name in self.constants:
                return [t for v in self.constants[name].values for t in self.texts(v, scope)]
            case ast.Name(id=name) if (values := self.bound(name, scope)) is not None:
                return [t for value in values for t in self.texts(value, scope)]
        self.unknown.add(ast.unparse(node))
        return []

    def constants_of(self, node):
        """Words among the choices inside a hole: ``{names or "none"}``."""
        choices = node.values if isinstance(node, ast.BoolOp) else [node.body, node.orelse]
        return [c.value for c in choices if isinstance(c, ast.Constant) and c.value]

    def bound(self, name, scope):
        """Expressions a name stands for: assigned in its function, or a place in a table that a loop walks."""
        values = []
        for n in ast.walk(scope):
            if isinstance(n, ast.Assign) and any(
                isinstance(t, ast.Name) and t.id == name for t in n.targets
            ):
                values.append(n.value)
            if (
                isinstance(n, ast.For)
                and isinstance(n.target, ast.Tuple)
                and isinstance(n.iter, ast.Name)
            ):
                names = [ast.unparse(t) for t in n.target.elts]
                if name in names and n.iter.id in self.constants:
                    at = names.index(name)
                    values += [row.elts[at] for row in self.constants[n.iter.id].elts]
        return values or ([self.constants[name]] if name in self.constants else None)


def modules_of(source: Path):
    """Every module of a package, read; the classes of errors are found by their bases."""
    paths = sorted(source.rglob("*.py"))
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in paths]
    classes = [n for tree in trees for n in ast.walk(tree) if isinstance(n, ast.ClassDef)]
    errors = {"KlinicError"}
    while more := {c.name for c in classes if errors & {name_of(b) for b in c.bases}} - errors:
        errors |= more
    return [Module(path, errors).read() for path in paths]
